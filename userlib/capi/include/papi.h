/* PAPI's classic calls for programs that run under Tally: the declarations of PAPI 7.0, with its
 * codes and states, counted by Tally's sessions. Link a static program with libpapi.a:
 *   cc -static program.c -lpapi
 *
 * Values of events that share counters are estimates; PAPI_tally_readings returns their errors.
 * docs/guide/papi.md lists the differences from PAPI. On kernels other than Tally,
 * PAPI_library_init returns PAPI_ENOSUPP, and the program can continue.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef PAPI_H
#define PAPI_H

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

#include "papiStdEventDefs.h"
#include "papi_structs.h"
#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PAPI_VERSION_NUMBER(major, minor, revision, increment)                                     \
    (((major) << 24) | ((minor) << 16) | ((revision) << 8) | (increment))
#define PAPI_VERSION_MAJOR(version) (((version) >> 24) & 0xff)
#define PAPI_VERSION_MINOR(version) (((version) >> 16) & 0xff)
#define PAPI_VERSION_REVISION(version) (((version) >> 8) & 0xff)
#define PAPI_VERSION_INCREMENT(version) ((version) & 0xff)
#define PAPI_VERSION PAPI_VERSION_NUMBER(7, 0, 0, 0)
#define PAPI_VER_CURRENT (PAPI_VERSION & 0xffff0000)

#define IS_NATIVE(code) (((code) & PAPI_NATIVE_MASK) && !((code) & PAPI_PRESET_MASK))
#define IS_PRESET(code) (((code) & PAPI_PRESET_MASK) && !((code) & PAPI_NATIVE_MASK))
#define IS_USER_DEFINED(code) (((code) & PAPI_PRESET_MASK) && ((code) & PAPI_NATIVE_MASK))

/* Results. PAPI_strerror returns their texts. */
#define PAPI_OK 0
#define PAPI_EINVAL -1
#define PAPI_ENOMEM -2
#define PAPI_ESYS -3
#define PAPI_ECMP -4
#define PAPI_ESBSTR -4
#define PAPI_ECLOST -5
#define PAPI_EBUG -6
#define PAPI_ENOEVNT -7
#define PAPI_ECNFLCT -8
#define PAPI_ENOTRUN -9
#define PAPI_EISRUN -10
#define PAPI_ENOEVST -11
#define PAPI_ENOTPRESET -12
#define PAPI_ENOCNTR -13
#define PAPI_EMISC -14
#define PAPI_EPERM -15
#define PAPI_ENOINIT -16
#define PAPI_ENOCMP -17
#define PAPI_ENOSUPP -18
#define PAPI_ENOIMPL -19
#define PAPI_EBUF -20
#define PAPI_EINVAL_DOM -21
#define PAPI_EATTR -22
#define PAPI_ECOUNT -23
#define PAPI_ECOMBO -24
#define PAPI_ECMP_DISABLED -25
#define PAPI_EDELAY_INIT -26
#define PAPI_EMULPASS -27
#define PAPI_NUM_ERRORS 28

/* Bits of PAPI_is_initialized. */
#define PAPI_NOT_INITED 0
#define PAPI_LOW_LEVEL_INITED 1
#define PAPI_HIGH_LEVEL_INITED 2
#define PAPI_THREAD_LEVEL_INITED 4

/* No event set. */
#define PAPI_NULL -1

/* Domains in which events are counted. Tally has ring 3 and ring 0, which is PAPI_DOM_KERNEL. */
#define PAPI_DOM_USER 0x1
#define PAPI_DOM_MIN PAPI_DOM_USER
#define PAPI_DOM_KERNEL 0x2
#define PAPI_DOM_OTHER 0x4
#define PAPI_DOM_SUPERVISOR 0x8
#define PAPI_DOM_ALL (PAPI_DOM_USER | PAPI_DOM_KERNEL | PAPI_DOM_OTHER | PAPI_DOM_SUPERVISOR)
#define PAPI_DOM_MAX PAPI_DOM_ALL
#define PAPI_DOM_HWSPEC 0x80000000

/* Granularity of counting. Tally counts the thread that starts the set. */
#define PAPI_GRN_THR 0x1
#define PAPI_GRN_MIN PAPI_GRN_THR
#define PAPI_GRN_PROC 0x2
#define PAPI_GRN_PROCG 0x4
#define PAPI_GRN_SYS 0x8
#define PAPI_GRN_SYS_CPU 0x10
#define PAPI_GRN_MAX PAPI_GRN_SYS_CPU

/* Data that threads store, and locks. */
#define PAPI_USR1_TLS 0x0
#define PAPI_USR2_TLS 0x1
#define PAPI_TLS_HIGH_LEVEL 0x2
#define PAPI_NUM_TLS 0x3
#define PAPI_TLS_USR1 PAPI_USR1_TLS
#define PAPI_TLS_USR2 PAPI_USR2_TLS
#define PAPI_TLS_NUM PAPI_NUM_TLS
#define PAPI_TLS_ALL_THREADS 0x10
#define PAPI_USR1_LOCK 0x0
#define PAPI_USR2_LOCK 0x1
#define PAPI_NUM_LOCK 0x2
#define PAPI_LOCK_USR1 PAPI_USR1_LOCK
#define PAPI_LOCK_USR2 PAPI_USR2_LOCK
#define PAPI_LOCK_NUM PAPI_NUM_LOCK

#define PAPI_VENDOR_UNKNOWN 0
#define PAPI_VENDOR_INTEL 1
#define PAPI_VENDOR_AMD 2

/* Bits of an event set's state. */
#define PAPI_STOPPED 0x01
#define PAPI_RUNNING 0x02
#define PAPI_PAUSED 0x04
#define PAPI_NOT_INIT 0x08
#define PAPI_OVERFLOWING 0x10
#define PAPI_PROFILING 0x20
#define PAPI_MULTIPLEXING 0x40
#define PAPI_ATTACHED 0x80
#define PAPI_CPU_ATTACHED 0x100

/* Reaction to an error: nothing; a report on standard error; a report and the end of the
 * program. */
#define PAPI_QUIET 0
#define PAPI_VERB_ECONT 1
#define PAPI_VERB_ESTOP 2

/* Flags of histograms. */
#define PAPI_PROFIL_POSIX 0x0
#define PAPI_PROFIL_RANDOM 0x1
#define PAPI_PROFIL_WEIGHTED 0x2
#define PAPI_PROFIL_COMPRESS 0x4
#define PAPI_PROFIL_BUCKET_16 0x8
#define PAPI_PROFIL_BUCKET_32 0x10
#define PAPI_PROFIL_BUCKET_64 0x20
#define PAPI_PROFIL_FORCE_SW 0x40
#define PAPI_PROFIL_DATA_EAR 0x80
#define PAPI_PROFIL_INST_EAR 0x100
#define PAPI_PROFIL_BUCKETS (PAPI_PROFIL_BUCKET_16 | PAPI_PROFIL_BUCKET_32 | PAPI_PROFIL_BUCKET_64)

#define PAPI_OVERFLOW_FORCE_SW 0x40
#define PAPI_OVERFLOW_HARDWARE 0x80
#define PAPI_MULTIPLEX_DEFAULT 0x0
#define PAPI_MULTIPLEX_FORCE_SW 0x1
#define PAPI_INHERIT_ALL 1
#define PAPI_INHERIT_NONE 0
#define PAPI_INIT_SLOTS 64
#define PAPI_DERIVED 0x1

/* Options of PAPI_get_opt and PAPI_set_opt. */
#define PAPI_DETACH 1
#define PAPI_DEBUG 2
#define PAPI_MULTIPLEX 3
#define PAPI_DEFDOM 4
#define PAPI_DOMAIN 5
#define PAPI_DEFGRN 6
#define PAPI_GRANUL 7
#define PAPI_DEF_MPX_NS 8
#define PAPI_MAX_MPX_CTRS 11
#define PAPI_PROFIL 12
#define PAPI_PRELOAD 13
#define PAPI_CLOCKRATE 14
#define PAPI_MAX_HWCTRS 15
#define PAPI_HWINFO 16
#define PAPI_EXEINFO 17
#define PAPI_MAX_CPUS 18
#define PAPI_ATTACH 19
#define PAPI_SHLIBINFO 20
#define PAPI_LIB_VERSION 21
#define PAPI_COMPONENTINFO 22
#define PAPI_DATA_ADDRESS 23
#define PAPI_INSTR_ADDRESS 24
#define PAPI_DEF_ITIMER 25
#define PAPI_DEF_ITIMER_NS 26
#define PAPI_CPU_ATTACH 27
#define PAPI_INHERIT 28
#define PAPI_USER_EVENTS_FILE 29

/* Modifiers of enumerations. Native events support PAPI_ENUM_FIRST and PAPI_ENUM_EVENTS: unit masks
 * are parts of their names. */
enum {
    PAPI_ENUM_EVENTS,
    PAPI_ENUM_FIRST,
    PAPI_PRESET_ENUM_AVAIL,
    PAPI_PRESET_ENUM_MSC,
    PAPI_PRESET_ENUM_INS,
    PAPI_PRESET_ENUM_IDL,
    PAPI_PRESET_ENUM_BR,
    PAPI_PRESET_ENUM_CND,
    PAPI_PRESET_ENUM_MEM,
    PAPI_PRESET_ENUM_CACH,
    PAPI_PRESET_ENUM_L1,
    PAPI_PRESET_ENUM_L2,
    PAPI_PRESET_ENUM_L3,
    PAPI_PRESET_ENUM_TLB,
    PAPI_PRESET_ENUM_FP,
    PAPI_NTV_ENUM_UMASKS,
    PAPI_NTV_ENUM_UMASK_COMBOS,
    PAPI_NTV_ENUM_IARR,
    PAPI_NTV_ENUM_DARR,
    PAPI_NTV_ENUM_OPCM,
    PAPI_NTV_ENUM_IEAR,
    PAPI_NTV_ENUM_DEAR,
    PAPI_NTV_ENUM_GROUPS
};
#define PAPI_ENUM_ALL PAPI_ENUM_EVENTS
#define PAPI_PRESET_BIT_MSC (1 << PAPI_PRESET_ENUM_MSC)
#define PAPI_PRESET_BIT_INS (1 << PAPI_PRESET_ENUM_INS)
#define PAPI_PRESET_BIT_IDL (1 << PAPI_PRESET_ENUM_IDL)
#define PAPI_PRESET_BIT_BR (1 << PAPI_PRESET_ENUM_BR)
#define PAPI_PRESET_BIT_CND (1 << PAPI_PRESET_ENUM_CND)
#define PAPI_PRESET_BIT_MEM (1 << PAPI_PRESET_ENUM_MEM)
#define PAPI_PRESET_BIT_CACH (1 << PAPI_PRESET_ENUM_CACH)
#define PAPI_PRESET_BIT_L1 (1 << PAPI_PRESET_ENUM_L1)
#define PAPI_PRESET_BIT_L2 (1 << PAPI_PRESET_ENUM_L2)
#define PAPI_PRESET_BIT_L3 (1 << PAPI_PRESET_ENUM_L3)
#define PAPI_PRESET_BIT_TLB (1 << PAPI_PRESET_ENUM_TLB)
#define PAPI_PRESET_BIT_FP (1 << PAPI_PRESET_ENUM_FP)

/* The library. */
int PAPI_library_init(int version);
int PAPI_is_initialized(void);
void PAPI_shutdown(void);
char *PAPI_strerror(int code);
void PAPI_perror(const char *message);
int PAPI_set_debug(int level);
int PAPI_get_opt(int option, PAPI_option_t *value);
int PAPI_set_opt(int option, PAPI_option_t *value);
int PAPI_get_cmp_opt(int option, PAPI_option_t *value, int cidx);

/* Event sets. */
int PAPI_create_eventset(int *EventSet);
int PAPI_cleanup_eventset(int EventSet);
int PAPI_destroy_eventset(int *EventSet);
int PAPI_assign_eventset_component(int EventSet, int cidx);
int PAPI_get_eventset_component(int EventSet);
int PAPI_add_event(int EventSet, int Event);
int PAPI_add_named_event(int EventSet, const char *EventName);
int PAPI_add_events(int EventSet, int *Events, int number);
int PAPI_remove_event(int EventSet, int Event);
int PAPI_remove_named_event(int EventSet, const char *EventName);
int PAPI_remove_events(int EventSet, int *Events, int number);
int PAPI_list_events(int EventSet, int *Events, int *number);
int PAPI_num_events(int EventSet);
int PAPI_state(int EventSet, int *status);

/* Counting of the thread that starts a set; a thread has one running set at a time. An event that
 * has not been counted at all since the start has the value -1, and PAPI_accum returns
 * PAPI_ECLOST. */
int PAPI_start(int EventSet);
int PAPI_stop(int EventSet, long long *values);
int PAPI_read(int EventSet, long long *values);
int PAPI_read_ts(int EventSet, long long *values, long long *cycles);
int PAPI_accum(int EventSet, long long *values);
int PAPI_reset(int EventSet);
int PAPI_write(int EventSet, long long *values);

/* Extension of Tally: writes the first number readings of a set since its start or last reset, each
 * with its error: exact, estimated, or not measured. Returns the number of events, or an error. */
int PAPI_tally_readings(int EventSet, struct tally_reading *readings, int number);

/* Thresholds and histograms. */
int PAPI_overflow(int EventSet, int EventCode, int threshold, int flags,
                  PAPI_overflow_handler_t handler);
int PAPI_get_overflow_event_index(int EventSet, long long overflow_vector, int *array, int *number);
int PAPI_profil(void *buffer, unsigned bytes, vptr_t offset, unsigned scale, int EventSet,
                int EventCode, int threshold, int flags);
int PAPI_sprofil(PAPI_sprofil_t *histograms, int number, int EventSet, int EventCode, int threshold,
                 int flags);

/* Events. */
int PAPI_event_name_to_code(const char *name, int *code);
int PAPI_event_code_to_name(int code, char *name);
int PAPI_query_event(int code);
int PAPI_query_named_event(const char *name);
int PAPI_get_event_info(int code, PAPI_event_info_t *info);
int PAPI_get_event_component(int code);
int PAPI_enum_event(int *code, int modifier);
int PAPI_enum_cmp_event(int *code, int modifier, int cidx);

/* Settings of event sets. Every set is multiplexed as needed, with these calls or without. */
int PAPI_multiplex_init(void);
int PAPI_set_multiplex(int EventSet);
int PAPI_get_multiplex(int EventSet);
int PAPI_set_domain(int domain);
int PAPI_set_cmp_domain(int domain, int cidx);
int PAPI_set_granularity(int granularity);
int PAPI_set_cmp_granularity(int granularity, int cidx);
int PAPI_attach(int EventSet, unsigned long tid);
int PAPI_detach(int EventSet);

/* The machine, the component and the program. */
int PAPI_num_hwctrs(void);
int PAPI_num_cmp_hwctrs(int cidx);
int PAPI_num_components(void);
const PAPI_component_info_t *PAPI_get_component_info(int cidx);
int PAPI_get_component_index(const char *name);
int PAPI_disable_component(int cidx);
int PAPI_disable_component_by_name(const char *name);
const PAPI_hw_info_t *PAPI_get_hardware_info(void);
const PAPI_exe_info_t *PAPI_get_executable_info(void);
const PAPI_shlib_info_t *PAPI_get_shared_lib_info(void);
int PAPI_get_dmem_info(PAPI_dmem_info_t *info);

/* Clocks, since boot, and of the calling thread. */
long long PAPI_get_real_cyc(void);
long long PAPI_get_real_nsec(void);
long long PAPI_get_real_usec(void);
long long PAPI_get_virt_cyc(void);
long long PAPI_get_virt_nsec(void);
long long PAPI_get_virt_usec(void);

/* Threads. */
int PAPI_thread_init(unsigned long (*number)(void));
unsigned long PAPI_thread_id(void);
int PAPI_register_thread(void);
int PAPI_unregister_thread(void);
int PAPI_list_threads(unsigned long *threads, int *number);
int PAPI_get_thr_specific(int tag, void **pointer);
int PAPI_set_thr_specific(int tag, void *pointer);
int PAPI_lock(int lock);
int PAPI_unlock(int lock);

/* Rates: the first call starts counting, later ones return the counts since then. */
int PAPI_ipc(float *real, float *process, long long *instructions, float *ipc);
int PAPI_epc(int event, float *real, float *process, long long *reference, long long *core,
             long long *events, float *epc);
int PAPI_flips_rate(int event, float *real, float *process, long long *events, float *mflips);
int PAPI_flops_rate(int event, float *real, float *process, long long *events, float *mflops);
int PAPI_rate_stop(void);

/* High-level interface: regions by name, on the events that the environment variable PAPI_EVENTS
 * names. Their counts are printed to standard error at the end. */
int PAPI_hl_region_begin(const char *region);
int PAPI_hl_read(const char *region);
int PAPI_hl_region_end(const char *region);
int PAPI_hl_stop(void);

/* Older names. */
#define PAPI_COMPONENT_INDEX(code) PAPI_get_event_component(code)
#define PAPI_descr_error(code) PAPI_strerror(code)

#ifdef __cplusplus
}
#endif

#endif
