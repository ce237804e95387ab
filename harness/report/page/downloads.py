"""Links that save what the page holds: they stand in it whole, and need no network.

A short CSV is in its link as it is. A long one (a thousand cells in eight figures and six tables) would be most of the
page: it is gzipped, which makes it a tenth. `scripts/csv.js` saves it as plain CSV; without JavaScript the browser
saves the `.csv.gz`, which pandas and R read as it is.
"""

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from harness.report.export.rows import ExportRow, to_csv

LONGEST_PLAIN = 20_000
"""Letters of a CSV that stands in its link as it is."""


@dataclass(frozen=True)
class Download:
    """What an `<a download="{file}" href="{href}">` saves."""

    file: str
    href: str


def csv_download(rows: Sequence[ExportRow], name: str) -> Download:
    """`rows` as the CSV file `name`.csv, or `name`.csv.gz where it is long. The same rows give the same link."""
    text = to_csv(rows)
    if len(text) <= LONGEST_PLAIN:
        short = quote(text, safe=",:;/@+=.!*'()[]|-_~ ").replace(" ", "%20")
        return Download(f"{name}.csv", f"data:text/csv;charset=utf-8,{short}")
    # no time in it: the page of a run is the same whenever it is made
    packed = gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)
    return Download(f"{name}.csv.gz", f"data:application/gzip;base64,{base64.b64encode(packed).decode('ascii')}")
