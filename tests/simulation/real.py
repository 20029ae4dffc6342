"""The functions of the system that the simulation replaces, as they were before.

It is imported before anything is replaced.
"""

import _thread
import os
import time

get_ident = _thread.get_ident
monotonic = time.monotonic
time_ns = time.time_ns
wall_time = time.time
sleep = time.sleep
urandom = os.urandom
