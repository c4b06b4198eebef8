/* The structures of papi.h. Programs include that header.
 *
 * Members that Tally does not support are 0 or empty.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef PAPI_STRUCTS_H
#define PAPI_STRUCTS_H

#define PAPI_MIN_STR_LEN 64
#define PAPI_MAX_STR_LEN 128
#define PAPI_2MAX_STR_LEN 256
#define PAPI_HUGE_STR_LEN 1024
#define PAPI_PMU_MAX 80
#define PAPI_MAX_INFO_TERMS 12
#define PAPI_MH_MAX_LEVELS 6
#define PAPI_MAX_MEM_HIERARCHY_LEVELS 4

/* Older names of types. */
#define long_long long long
#define u_long_long unsigned long long
typedef void *vptr_t;

typedef unsigned long PAPI_thread_id_t;

/* Data of all threads, for PAPI_get_thr_specific with PAPI_TLS_ALL_THREADS. */
typedef struct _papi_all_thr_spec {
    int num;
    PAPI_thread_id_t *id;
    void **data;
} PAPI_all_thr_spec_t;

/* Handler that is called in the thread that started the set, each time an event has been counted
 * another threshold, with the address that was interrupted, a bit for the event's position in the
 * set, and a ucontext_t. */
typedef void (*PAPI_overflow_handler_t)(int EventSet, void *address, long long overflow_vector,
                                        void *context);
typedef int (*PAPI_debug_handler_t)(int code);

/* A histogram of addresses. Each bucket stands for 131,072 / pr_scale bytes of text. */
typedef struct _papi_sprofil {
    void *pr_base;
    unsigned pr_size; /* bytes */
    vptr_t pr_off;    /* the first address */
    unsigned pr_scale;
} PAPI_sprofil_t;

typedef struct _papi_itimer_option {
    int itimer_num;
    int itimer_sig;
    int ns;
    int flags;
} PAPI_itimer_option_t;

typedef struct _papi_inherit_option {
    int eventset;
    int inherit;
} PAPI_inherit_option_t;

typedef struct _papi_domain_option {
    int def_cidx;
    int eventset;
    int domain;
} PAPI_domain_option_t;

typedef struct _papi_granularity_option {
    int def_cidx;
    int eventset;
    int granularity;
} PAPI_granularity_option_t;

typedef struct _papi_preload_option {
    char lib_preload_env[PAPI_MAX_STR_LEN];
    char lib_preload_sep;
    char lib_dir_env[PAPI_MAX_STR_LEN];
    char lib_dir_sep;
} PAPI_preload_info_t;

/* The component; Tally is the only one, number 0. */
typedef struct _papi_component_option {
    char name[PAPI_MAX_STR_LEN];
    char short_name[PAPI_MIN_STR_LEN];
    char description[PAPI_MAX_STR_LEN];
    char version[PAPI_MIN_STR_LEN];
    char support_version[PAPI_MIN_STR_LEN];
    char kernel_version[PAPI_MIN_STR_LEN];
    char disabled_reason[PAPI_HUGE_STR_LEN];
    int disabled; /* 0, or the error */
    int initialized;
    int CmpIdx;
    int num_cntrs;     /* counters of the PMU */
    int num_mpx_cntrs; /* events of a set */
    int num_preset_events;
    int num_native_events;
    int default_domain;
    int available_domains;
    int default_granularity;
    int available_granularities;
    int hardware_intr_sig;
    int component_type;
    char *pmu_names[PAPI_PMU_MAX];
    int reserved[8];
    unsigned int hardware_intr : 1;
    unsigned int precise_intr : 1;
    unsigned int posix1b_timers : 1;
    unsigned int kernel_profile : 1;
    unsigned int kernel_multiplex : 1;
    unsigned int fast_counter_read : 1;
    unsigned int fast_real_timer : 1;
    unsigned int fast_virtual_timer : 1;
    unsigned int attach : 1;
    unsigned int attach_must_ptrace : 1;
    unsigned int cntr_umasks : 1;
    unsigned int cpu : 1;
    unsigned int inherit : 1;
    unsigned int reserved_bits : 19;
} PAPI_component_info_t;

typedef struct _papi_debug_option {
    int level;
    PAPI_debug_handler_t handler;
} PAPI_debug_option_t;

/* Ranges of a program in memory: start and end of each part. */
typedef struct _papi_address_map {
    char name[PAPI_HUGE_STR_LEN];
    vptr_t text_start;
    vptr_t text_end;
    vptr_t data_start;
    vptr_t data_end;
    vptr_t bss_start;
    vptr_t bss_end;
} PAPI_address_map_t;

typedef struct _papi_program_info {
    char fullname[PAPI_HUGE_STR_LEN];
    PAPI_address_map_t address_info;
} PAPI_exe_info_t;

typedef struct _papi_shared_lib_info {
    PAPI_address_map_t *map;
    int count;
} PAPI_shlib_info_t;

typedef char *PAPI_user_defined_events_file_t;

/* Types of caches and TLBs, by bits. */
#define PAPI_MH_TYPE_EMPTY 0x0
#define PAPI_MH_TYPE_INST 0x1
#define PAPI_MH_TYPE_DATA 0x2
#define PAPI_MH_TYPE_VECTOR 0x4
#define PAPI_MH_TYPE_TRACE 0x8
#define PAPI_MH_TYPE_UNIFIED (PAPI_MH_TYPE_INST | PAPI_MH_TYPE_DATA)
#define PAPI_MH_TYPE_WT 0x00
#define PAPI_MH_TYPE_WB 0x10
#define PAPI_MH_TYPE_UNKNOWN 0x000
#define PAPI_MH_TYPE_LRU 0x100
#define PAPI_MH_TYPE_PSEUDO_LRU 0x200
#define PAPI_MH_TYPE_FIFO 0x400
#define PAPI_MH_TYPE_TLB 0x1000
#define PAPI_MH_TYPE_PREF 0x2000
#define PAPI_MH_TYPE_RD_ALLOC 0x10000
#define PAPI_MH_TYPE_WR_ALLOC 0x20000
#define PAPI_MH_TYPE_RW_ALLOC 0x40000
#define PAPI_MH_CACHE_TYPE(type) ((type) & 0xf)
#define PAPI_MH_CACHE_WRITE_POLICY(type) ((type) & 0xf0)
#define PAPI_MH_CACHE_REPLACEMENT_POLICY(type) ((type) & 0xf00)
#define PAPI_MH_CACHE_ALLOCATION_POLICY(type) ((type) & 0xf0000)

typedef struct _papi_mh_tlb_info {
    int type;
    int num_entries;
    int page_size;
    int associativity;
} PAPI_mh_tlb_info_t;

typedef struct _papi_mh_cache_info {
    int type;
    int size;      /* bytes */
    int line_size; /* bytes */
    int num_lines;
    int associativity;
} PAPI_mh_cache_info_t;

typedef struct _papi_mh_level_info {
    PAPI_mh_tlb_info_t tlb[PAPI_MH_MAX_LEVELS];
    PAPI_mh_cache_info_t cache[PAPI_MH_MAX_LEVELS];
} PAPI_mh_level_t;

typedef struct _papi_mh_info {
    int levels;
    PAPI_mh_level_t level[PAPI_MAX_MEM_HIERARCHY_LEVELS];
} PAPI_mh_info_t;

/* The machine. Rates of clocks are that of the TSC, in MHz. */
typedef struct _papi_hw_info {
    int ncpu;
    int threads; /* of a core */
    int cores;   /* of a socket */
    int sockets;
    int nnodes;
    int totalcpus;
    int vendor; /* PAPI_VENDOR_... */
    char vendor_string[PAPI_MAX_STR_LEN];
    int model;
    char model_string[PAPI_MAX_STR_LEN];
    float revision;
    int cpuid_family;
    int cpuid_model;
    int cpuid_stepping;
    int cpu_max_mhz;
    int cpu_min_mhz;
    PAPI_mh_info_t mem_hierarchy;
    int virtualized;
    char virtual_vendor_string[PAPI_MAX_STR_LEN];
    char virtual_vendor_version[PAPI_MAX_STR_LEN];
    float mhz;
    int clock_mhz;
    int reserved[8];
} PAPI_hw_info_t;

typedef struct _papi_attach_option {
    int eventset;
    unsigned long tid;
} PAPI_attach_option_t;

typedef struct _papi_cpu_option {
    int eventset;
    unsigned int cpu_num;
} PAPI_cpu_option_t;

typedef struct _papi_multiplex_option {
    int eventset;
    int ns;
    int flags;
} PAPI_multiplex_option_t;

typedef struct _papi_addr_range_option {
    int eventset;
    vptr_t start;
    vptr_t end;
    int start_off;
    int end_off;
} PAPI_addr_range_option_t;

/* For PAPI_get_opt and PAPI_set_opt: the member of the option. */
typedef union {
    PAPI_preload_info_t preload;
    PAPI_debug_option_t debug;
    PAPI_inherit_option_t inherit;
    PAPI_granularity_option_t granularity;
    PAPI_granularity_option_t defgranularity;
    PAPI_domain_option_t domain;
    PAPI_domain_option_t defdomain;
    PAPI_attach_option_t attach;
    PAPI_cpu_option_t cpu;
    PAPI_multiplex_option_t multiplex;
    PAPI_itimer_option_t itimer;
    PAPI_hw_info_t *hw_info;
    PAPI_shlib_info_t *shlib_info;
    PAPI_exe_info_t *exe_info;
    PAPI_component_info_t *cmp_info;
    PAPI_addr_range_option_t addr;
    PAPI_user_defined_events_file_t events_file;
} PAPI_option_t;

/* Memory of the program: in kilobytes, except the page size, which is in bytes. */
typedef struct _dmem_t {
    long long peak;
    long long size;
    long long resident;
    long long high_water_mark;
    long long shared;
    long long text;
    long long library;
    long long heap;
    long long locked;
    long long stack;
    long long pagesize;
    long long pte;
} PAPI_dmem_info_t;

/* Description of an event. A preset that the processor has is one native event, or two if it is
 * derived: count is their number, and code and name have them. The count of a preset that the
 * processor does not have is 0. */
typedef struct event_info {
    unsigned int event_code;
    char symbol[PAPI_HUGE_STR_LEN];
    char short_descr[PAPI_MIN_STR_LEN];
    char long_descr[PAPI_HUGE_STR_LEN];
    int component_index;
    char units[PAPI_MIN_STR_LEN];
    int location;
    int data_type;
    int value_type;
    int timescope;
    int update_type;
    int update_freq;
    unsigned int count;
    unsigned int event_type; /* categories: PAPI_PRESET_BIT_... */
    char derived[PAPI_MIN_STR_LEN];
    char postfix[PAPI_2MAX_STR_LEN];
    unsigned int code[PAPI_MAX_INFO_TERMS];
    char name[PAPI_MAX_INFO_TERMS][PAPI_2MAX_STR_LEN];
    char note[PAPI_HUGE_STR_LEN];
} PAPI_event_info_t;

#endif
