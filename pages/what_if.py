from core.ui.pages import PAGES, pick_section
from core.ui.sections.routing import routing
from core.ui.sections.what_if import larger_k, latency_targets, scenarios
from core.ui.view import current_view

page = PAGES["what_if"]
sections = (scenarios, latency_targets, larger_k, routing)
view = current_view()
dict(zip(page.sections, sections, strict=True))[pick_section(page)](view)
