"""A hand at a page: by the mouse, or by the keyboard alone, as who sees nothing goes through it."""

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
"""How many elements take the focus after the one that has it and before this one, as it seems."""


@dataclass(frozen=True, slots=True)
class Hand:
    """Does on a page what a person does; `by` is with what."""

    page: Any
    by: Literal["mouse", "keys"]

    def press(self, target: Any) -> None:
        """Follow a link, press a button, open what is folded."""
        if self.by == "mouse":
            target.click()
        else:
            self.reach(target)
            self.page.keyboard.press("Enter")

    def write(self, target: Any, text: str) -> None:
        """Put a text in place of what a field holds."""
        if self.by == "mouse":
            target.fill(text)
            return
        self.reach(target)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)

    def tick(self, target: Any) -> None:
        """Tick a box."""
        if self.by == "mouse":
            target.check()
            return
        self.reach(target)
        self.page.keyboard.press("Space")
        assert target.is_checked()

    def reach(self, target: Any) -> None:
        """Get the focus there by Tab alone: what cannot be reached so, a keyboard cannot use."""
        target.wait_for(state="visible")
        element = target.element_handle()
        unasked = element.evaluate(_STOPS_BEFORE)
        for tabs in range(MOST_TABS):
            # To ask costs more than to press; a wrong guess costs another round through the page.
            if tabs >= unasked and element.evaluate(_HAS_FOCUS):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{target} is not reached in {MOST_TABS} steps of Tab")
