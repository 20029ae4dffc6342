"""Python's collections of cyclic garbage in a process that serves.

They stop all threads, and visit every young object each time some hundred have been made: a group
of 32 samples makes thousands, nearly all of which are freed without them.
"""

import gc

# A collection visits the objects made since the last one, once there are this many.
_YOUNG_OBJECTS = 10_000


def begin_serving() -> None:
    """Collect garbage now; from here on collect rarely, and skip what is alive now.

    A full collection would otherwise visit all that lives until the process ends, and stop all
    threads for a tenth of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
