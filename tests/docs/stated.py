"""What a page of the documentation states: its sections, and the figures in them, whatever words stand around these."""

import re

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def section(page: str, title: str) -> str:
    """What stands below a heading of the page, on one line."""
    below = re.split(rf"^#+ {re.escape(title)}$", page, flags=re.MULTILINE)[1]
    return " ".join(re.split(r"^#+ ", below, flags=re.MULTILINE)[0].replace("\\|", "|").split())


def passage(page: str, lead: str) -> str:
    """From the words in bold that a paragraph begins with to the next such paragraph or heading, on one line."""
    below = re.split(rf"^\*\*{re.escape(lead)}\*\*", page, flags=re.MULTILINE)[1]
    return " ".join(re.split(r"^(?:\*\*|#+ )", below, flags=re.MULTILINE)[0].split())


def states(text: str, *figures: str) -> bool:
    """Whether the figures stand in the text, in this order, none of them as a part of a longer number."""
    alone = (rf"(?<![\d.,·]){re.escape(figure)}(?!\d|[.,]\d)" for figure in figures)
    return re.search(".*".join(alone), text) is not None


def percent(share: float) -> str:
    """`30 %`, as pages write 0.3."""
    return f"{100 * share:g} %"


def power_of_ten(value: float) -> str:
    """`3·10⁻²`, as pages write 0.03."""
    factor, _, exponent = f"{value:.0e}".partition("e")
    power = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    return power if factor == "1" else f"{factor}·{power}"
