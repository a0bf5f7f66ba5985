from core.ui.pages import PAGES, pick_section
from core.ui.sections.confidence import other_weights, what_flips_it, would_it_hold
from core.ui.sections.worth import worth_measuring_more
from core.ui.view import current_view

page = PAGES["confidence"]
sections = (would_it_hold, what_flips_it, other_weights, worth_measuring_more)
view = current_view()
dict(zip(page.sections, sections, strict=True))[pick_section(page)](view)
