#!/bin/sh
# Measures LTTng-UST out of the folder $1, $2 times: compiles record.c, starts a session daemon of its own, which
# ends with this script, records into buffers that overwrite and that nobody reads, and sees that records came.
set -e
place=$1
cd "$place"
libraries=$place/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries
export PATH=$place/usr/bin:$PATH
LTTNG_HOME=$(mktemp -d)
export LTTNG_HOME
export LTTNG_SESSION_CONFIG_XSD_PATH=$place/usr/share/xml/lttng
cc -O2 -I usr/include -I usr/include/x86_64-linux-gnu -I . -o record record.c -L "$libraries" \
    -Wl,-rpath-link,"$libraries" -llttng-ust -llttng-ust-common -ldl
lttng-sessiond --no-kernel --consumerd64-path="$libraries/lttng/libexec/lttng-consumerd" \
    --consumerd64-libdir="$libraries" >"$LTTNG_HOME/log" 2>&1 &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait $daemon 2>/dev/null; rm -rf "$LTTNG_HOME"' EXIT
for _ in 1 2 3 4 5 6 7 8 9 10; do
    lttng --no-sessiond list >/dev/null 2>&1 && break
    sleep 0.5
done
{
    lttng --no-sessiond create tally --snapshot
    lttng --no-sessiond enable-channel --userspace --overwrite --subbuf-size=256k --num-subbuf=4 c
    lttng --no-sessiond enable-event --userspace --channel=c tally:record
    lttng --no-sessiond start
} >&2
LTTNG_UST_REGISTER_TIMEOUT=5000 ./record "$2"
