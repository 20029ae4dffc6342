#!/bin/sh
# The image's entry point: wolfstream, its compiled code in a directory that can be written.
#
# numba takes a cache directory only where it can create files, even if all that it needs is
# there already; the image's own belongs to root and may be mounted read-only. So the compiled
# code, a few megabytes, is copied to the first of these directories that takes it.
set -eu

home=$(dirname "$0")
for base in "${XDG_CACHE_HOME:-/tmp}" /dev/shm; do
    if mkdir -p "$base/wolfstream" && cp -R "$home/cache/wolfstream/." "$base/wolfstream"; then
        export XDG_CACHE_HOME="$base"
        break
    fi 2>/dev/null
done

# The shell gives its place to the server, and with it the signals.
exec "$home/venv/bin/wolfstream" "$@"
