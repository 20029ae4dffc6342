#!/bin/sh
# The image's entry point: wolfstream, its compiled code in a directory that can be written.
#
# numba takes a cache directory only where it can create files, even if all that it needs is
# there already; the image's own belongs to root and may be mounted read-only. So the compiled
# code, a few megabytes, is copied to the first of these directories that takes it.
set -eu

home=$(dirname "$0")
found=
for base in "${XDG_CACHE_HOME:-/tmp}" /dev/shm "${WOLFSTREAM_DATA:-/data}/cache"; do
    if mkdir -p "$base/wolfstream" && cp -R "$home/cache/wolfstream/." "$base/wolfstream"; then
        found=$base
        break
    fi 2>/dev/null
done
if [ -n "$found" ]; then
    export XDG_CACHE_HOME="$found"
    # What else needs a temporary directory gets the one that can be written.
    [ -w "${TMPDIR:-/tmp}" ] || export TMPDIR="$found"
else
    echo "wolfstream: no compiled code could be copied from $home/cache: user $(id -u) cannot" \
        "read it, or can write neither to ${XDG_CACHE_HOME:-/tmp} nor to /dev/shm nor to" \
        "${WOLFSTREAM_DATA:-/data}; everything is compiled now, which takes minutes" >&2
fi

# The shell gives its place to the server, and with it the signals.
exec "$home/venv/bin/wolfstream" "$@"
