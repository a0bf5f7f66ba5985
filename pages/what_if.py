from core.ui.pages import PAGES, pick_section
from core.ui.sections.larger_k import larger_k
from core.ui.sections.routing import routing
from core.ui.sections.scenarios import scenarios
from core.ui.sections.targets import latency_targets
from core.ui.view import current_view

page = PAGES["what_if"]
sections = (scenarios, latency_targets, larger_k, routing)
view = current_view()
dict(zip(page.sections, sections, strict=True))[pick_section(page)](view)
