from core.ui.pages import PAGES, pick_section
from core.ui.sections.readers_depth import by_depth, matrix, with_and_without_gold
from core.ui.sections.readers_joint import generators, joint_k
from core.ui.sections.readers_rebel import rerankers
from core.ui.view import current_view

page = PAGES["readers"]
sections = (by_depth, with_and_without_gold, matrix, joint_k, generators, rerankers)
view = current_view()
dict(zip(page.sections, sections, strict=True))[pick_section(page)](view)
