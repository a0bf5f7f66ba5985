from core.ui.pages import PAGES, pick_section
from core.ui.sections.diagnose import names, noise
from core.ui.view import current_view

page = PAGES["diagnostics"]
sections = (names, noise)
view = current_view()
dict(zip(page.sections, sections, strict=True))[pick_section(page)](view)
