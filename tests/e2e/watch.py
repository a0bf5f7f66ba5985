"""A page under watch: what it asks for, what it complains about, and how to use it as a person does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

from playwright.sync_api import ConsoleMessage, Dialog, Locator, Page, Request, ViewportSize, expect

LOCAL = {"localhost", "127.0.0.1"}
PATIENCE_MS = 30_000
QUIET_MS = 300
"""How long nothing may be computed or drawn until a page counts as settled."""
_QUIET = """([round, long]) => {
  const busy = document.querySelector('[data-testid=stSkeleton], [data-testid=stStatusWidget]')
    || document.querySelector('[data-stale=true]')
    || !document.querySelector('[data-test-script-state=notRunning]')
    || document.querySelector('.clq-strip[aria-busy=true], .clq-strip:not(.clq-ready)')
    || document.querySelector('.clq-live[aria-busy=true], .clq-live:not(.clq-ready)')
    || [...document.querySelectorAll('.clq-figure:not(.clq-ready)')].some(chart => chart.checkVisibility());
  const now = performance.now();
  if (busy || window.clqRound !== round) [window.clqRound, window.clqBusy] = [round, now];
  return now - window.clqBusy >= long;
}"""
WINDOW: ViewportSize = {"width": 1280, "height": 800}


class Visit:
    """One page in a browser context of its own.

    Attributes:
        page: The page.
        outside: Addresses it asked for that are not on this machine.
        errors: What its console called an error, and what its scripts did not catch.
        dialogs: Messages of dialogs, which only a script in untrusted text could open.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.outside: list[str] = []
        self.errors: list[str] = []
        self.dialogs: list[str] = []
        self._settled = 0
        page.set_default_timeout(PATIENCE_MS)
        self._heard = {
            "request": self._request,
            "console": self._console,
            "dialog": self._dialog,
            "pageerror": lambda error: self.errors.append(str(error)),
        }
        for event, hear in self._heard.items():
            page.on(event, hear)

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in LOCAL:
            self.outside.append(request.url)

    def _console(self, message: ConsoleMessage) -> None:
        # Streamlit looks for its server below the page's path before it looks above.
        if message.type == "error" and "404" not in message.text:
            self.errors.append(message.text)

    def _dialog(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def leave(self) -> None:
        """End the page and forget where its tab was, what it kept and how it looked."""
        self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        for event, hear in self._heard.items():
            self.page.remove_listener(event, hear)
        # Of the same server: elsewhere the browser would begin a new process, which has compiled nothing.
        self.page.goto(urljoin(self.page.url, "/_stcore/health"))
        self.page.context.clear_cookies()
        self.page.emulate_media(color_scheme="null")
        session = self.page.context.new_cdp_session(self.page)
        session.send("Page.resetNavigationHistory")
        session.detach()

    def open(self, url: str) -> None:
        """Open another address in the same tab, in the looks of a new one."""
        self.page.emulate_media(color_scheme="null")
        self.page.set_viewport_size(WINDOW)
        self.page.goto(url)
        self.settle()

    def settle(self) -> None:
        """Wait until the page has its heading and nothing is being computed or drawn."""
        expect(self.page.locator("[data-testid=stMain] h1").first).to_be_visible(timeout=60_000)
        self._settled += 1
        self.page.wait_for_function(_QUIET, arg=[self._settled, QUIET_MS], timeout=60_000)

    @property
    def answer(self) -> str:
        """The heading of the page, and on the first page its numbers too."""
        heading = self.page.locator("[data-testid=stMain] h1").or_(self.page.locator(".st-key-numbers"))
        return " ".join(heading.all_inner_texts())

    @property
    def address(self) -> str:
        """Where the page is, with all settings."""
        return str(self.page.evaluate("location.href"))

    def slider(self, label: str) -> Locator:
        """The slider whose label begins so, to be moved by keyboard."""
        return self.page.get_by_role("slider", name=re.compile(f"^{re.escape(label)}"))

    def field(self, label: str) -> Locator:
        """The field of a limit, to be typed into."""
        fields = self.page.locator(".clq-strip")
        return fields.get_by_role("textbox", name=re.compile(f"^{re.escape(label)}"))

    def press(self, target: Locator, key: str, times: int = 1) -> None:
        """Press a key on an element some times and wait for what follows."""
        target.focus()
        for _ in range(times):
            target.press(key)
        self.settle()

    def click_mark(self, mark: Locator) -> None:
        """Click the middle of a mark, below the layer that takes the clicks, once it moves no more."""
        mark.scroll_into_view_if_needed()
        box = None
        while box is None or box != mark.bounding_box():
            box = mark.bounding_box()
            self.page.wait_for_timeout(QUIET_MS)
        self.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def copy_link(self) -> str:
        """The address that “Share” puts on the clipboard."""
        button = self.page.get_by_role("button", name="Share", exact=True)
        button.click()
        expect(self.page.get_by_text("Link copied").first).to_be_visible()
        return str(self.page.evaluate("navigator.clipboard.readText()"))

    def walk(self) -> Iterator[str]:
        """Go to every page of the navigation, one after another, as a person does.

        Yields:
            The name of each page in the address, empty for the first, once the page is there.
        """
        links = self.page.locator("[data-testid=stSidebar] [data-testid=stPageLink-NavLink]")
        links = links.filter(visible=True)  # each stands there twice, once for its tooltip
        for place in range(links.count()):
            address = urlsplit(links.nth(place).get_attribute("href") or "").path
            links.nth(place).click()
            self.page.wait_for_function("path => location.pathname.endsWith(path)", arg=address.strip("."))
            self.settle()
            yield urlsplit(self.address).path.strip("/")

    def look(self, *, dark: bool, narrow: bool) -> None:
        """Turn the system's colours, and the window's size, under the open page."""
        self.page.emulate_media(color_scheme="dark" if dark else "light")
        self.page.set_viewport_size({"width": 390, "height": 844} if narrow else WINDOW)
        self.settle()

    def ink(self) -> str:
        """The colour of the page's text."""
        return str(self.page.locator("[data-testid=stMain]").evaluate("main => getComputedStyle(main).color"))

    def inks(self) -> set[str]:
        """The colours of the text beside the axes of its charts."""
        texts = self.page.locator(".clq-figure text:is(.xtitle, .ytitle, :is(.xtick, .ytick) > *)")
        return set(texts.evaluate_all("all => all.map(one => getComputedStyle(one).fill)"))

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))
