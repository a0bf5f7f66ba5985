from core.ui.draw import draw_page

draw_page()
