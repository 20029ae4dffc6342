"""The functions of the system that the simulation replaces, as they were before.

It is imported before anything is replaced.
"""

import _thread
import os
import time

allocate_lock = _thread.allocate_lock
start_new_thread = _thread.start_new_thread
monotonic = time.monotonic
time_ns = time.time_ns
wall_time = time.time
sleep = time.sleep
urandom = os.urandom
