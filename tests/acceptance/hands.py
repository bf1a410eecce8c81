"""Operate a page with the mouse, or with the keyboard only."""

from dataclasses import dataclass
from typing import Any, Final, Literal

MOST_TABS: Final = 600
_HAS_FOCUS: Final = "element => element === document.activeElement"
_STOPS_BEFORE: Final = """element => {
    const stops = [...document.querySelectorAll(
        "a[href], button, input, select, textarea, summary, iframe, [tabindex]"
    )].filter(one => one === element || one === document.activeElement ||
        (one.tabIndex >= 0 && !one.disabled && one.checkVisibility()));
    return stops.indexOf(element) - stops.indexOf(document.activeElement) - 1;
}"""
"""JavaScript that estimates how many presses of Tab lead to the element, minus one."""


@dataclass(frozen=True, slots=True)
class Hand:
    """A user of a page, who uses the mouse or the keyboard (`by`)."""

    page: Any
    by: Literal["mouse", "keys"]

    def press(self, target: Any) -> None:
        """Follow a link, press a button, or open a folded part."""
        if self.by == "mouse":
            target.click()
        else:
            self.reach(target)
            self.page.keyboard.press("Enter")

    def write(self, target: Any, text: str) -> None:
        """Replace the text of a field."""
        if self.by == "mouse":
            target.fill(text)
            return
        self.reach(target)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)

    def tick(self, target: Any) -> None:
        """Tick a checkbox."""
        if self.by == "mouse":
            target.check()
            return
        self.reach(target)
        self.page.keyboard.press("Space")
        assert target.is_checked()

    def reach(self, target: Any) -> None:
        """Press Tab until the element has the focus. Fail if no number of presses reaches it."""
        target.wait_for(state="visible")
        element = target.element_handle()
        unasked = element.evaluate(_STOPS_BEFORE)
        for tabs in range(MOST_TABS):
            # Asking the page is slower than pressing Tab, so ask only after the estimate.
            if tabs >= unasked and target.evaluate(_HAS_FOCUS):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{target} cannot be reached by pressing Tab {MOST_TABS} times")
