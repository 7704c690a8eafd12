"""What to measure next: a machine and measurements in; what one more reading is worth, out.

gains      the function `next_measurement`, and how its arguments are read
outlook    populations and posteriors: where a new reading will lie, what it will tell
judges     how probably a machine is wrong, now and after a reading
table      objects and features by what a reading gains
"""

from .gains import next_measurement
from .table import ReadingTable

__all__ = ["ReadingTable", "next_measurement"]
