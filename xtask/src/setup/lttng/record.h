/* The event that is compared: 8 bytes beside LTTng's own header with the time stamp. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tally

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./record.h"

#if !defined(RECORD_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define RECORD_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(tally, record, LTTNG_UST_TP_ARGS(unsigned long, n),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned long, n, n)))

#endif

#include <lttng/tracepoint-event.h>
