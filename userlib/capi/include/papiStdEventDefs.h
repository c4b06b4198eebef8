/* Codes of PAPI's presets. The list and its order are PAPI's; a code is the preset's position in
 * it. PAPI_query_event checks whether the processor has a preset.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef PAPI_STD_EVENT_DEFS_H
#define PAPI_STD_EVENT_DEFS_H

/* Masks that distinguish the kinds of codes: presets, native events, and events that users
 * define. */
#define PAPI_PRESET_MASK ((int)0x80000000)
#define PAPI_NATIVE_MASK ((int)0x40000000)
#define PAPI_UE_MASK ((int)0xc0000000)
#define PAPI_PRESET_AND_MASK 0x7fffffff
#define PAPI_NATIVE_AND_MASK 0xbfffffff
#define PAPI_UE_AND_MASK 0x3fffffff

#define PAPI_MAX_PRESET_EVENTS 128
#define PAPI_MAX_USER_EVENTS 50

#define PAPI_L1_DCM   (PAPI_PRESET_MASK | 0x00) /* level 1 data cache misses */
#define PAPI_L1_ICM   (PAPI_PRESET_MASK | 0x01) /* level 1 instruction cache misses */
#define PAPI_L2_DCM   (PAPI_PRESET_MASK | 0x02) /* level 2 data cache misses */
#define PAPI_L2_ICM   (PAPI_PRESET_MASK | 0x03) /* level 2 instruction cache misses */
#define PAPI_L3_DCM   (PAPI_PRESET_MASK | 0x04) /* level 3 data cache misses */
#define PAPI_L3_ICM   (PAPI_PRESET_MASK | 0x05) /* level 3 instruction cache misses */
#define PAPI_L1_TCM   (PAPI_PRESET_MASK | 0x06) /* level 1 cache misses */
#define PAPI_L2_TCM   (PAPI_PRESET_MASK | 0x07) /* level 2 cache misses */
#define PAPI_L3_TCM   (PAPI_PRESET_MASK | 0x08) /* level 3 cache misses */
#define PAPI_CA_SNP   (PAPI_PRESET_MASK | 0x09) /* requests for a snoop */
#define PAPI_CA_SHR   (PAPI_PRESET_MASK | 0x0a) /* requests for a shared cache line */
#define PAPI_CA_CLN   (PAPI_PRESET_MASK | 0x0b) /* requests for a clean cache line */
#define PAPI_CA_INV   (PAPI_PRESET_MASK | 0x0c) /* requests to invalidate a cache line */
#define PAPI_CA_ITV   (PAPI_PRESET_MASK | 0x0d) /* requests for a cache line by intervention */
#define PAPI_L3_LDM   (PAPI_PRESET_MASK | 0x0e) /* level 3 load misses */
#define PAPI_L3_STM   (PAPI_PRESET_MASK | 0x0f) /* level 3 store misses */
#define PAPI_BRU_IDL  (PAPI_PRESET_MASK | 0x10) /* cycles in which branch units are idle */
#define PAPI_FXU_IDL  (PAPI_PRESET_MASK | 0x11) /* cycles in which integer units are idle */
#define PAPI_FPU_IDL  (PAPI_PRESET_MASK | 0x12) /* cycles in which floating-point units are idle */
#define PAPI_LSU_IDL  (PAPI_PRESET_MASK | 0x13) /* cycles in which load and store units are idle */
#define PAPI_TLB_DM   (PAPI_PRESET_MASK | 0x14) /* data TLB misses */
#define PAPI_TLB_IM   (PAPI_PRESET_MASK | 0x15) /* instruction TLB misses */
#define PAPI_TLB_TL   (PAPI_PRESET_MASK | 0x16) /* TLB misses */
#define PAPI_L1_LDM   (PAPI_PRESET_MASK | 0x17) /* level 1 load misses */
#define PAPI_L1_STM   (PAPI_PRESET_MASK | 0x18) /* level 1 store misses */
#define PAPI_L2_LDM   (PAPI_PRESET_MASK | 0x19) /* level 2 load misses */
#define PAPI_L2_STM   (PAPI_PRESET_MASK | 0x1a) /* level 2 store misses */
#define PAPI_BTAC_M   (PAPI_PRESET_MASK | 0x1b) /* misses in the cache of branch targets */
#define PAPI_PRF_DM   (PAPI_PRESET_MASK | 0x1c) /* prefetches of data that miss */
#define PAPI_L3_DCH   (PAPI_PRESET_MASK | 0x1d) /* level 3 data cache hits */
#define PAPI_TLB_SD   (PAPI_PRESET_MASK | 0x1e) /* TLB shootdowns */
#define PAPI_CSR_FAL  (PAPI_PRESET_MASK | 0x1f) /* conditional stores that fail */
#define PAPI_CSR_SUC  (PAPI_PRESET_MASK | 0x20) /* conditional stores that succeed */
#define PAPI_CSR_TOT  (PAPI_PRESET_MASK | 0x21) /* conditional stores */
#define PAPI_MEM_SCY  (PAPI_PRESET_MASK | 0x22) /* cycles stalled for memory accesses */
#define PAPI_MEM_RCY  (PAPI_PRESET_MASK | 0x23) /* cycles stalled for memory reads */
#define PAPI_MEM_WCY  (PAPI_PRESET_MASK | 0x24) /* cycles stalled for memory writes */
#define PAPI_STL_ICY  (PAPI_PRESET_MASK | 0x25) /* cycles in which no instruction issues */
#define PAPI_FUL_ICY  (PAPI_PRESET_MASK | 0x26) /* cycles with the most instructions issued */
#define PAPI_STL_CCY  (PAPI_PRESET_MASK | 0x27) /* cycles in which no instruction completes */
#define PAPI_FUL_CCY  (PAPI_PRESET_MASK | 0x28) /* cycles with the most instructions completed */
#define PAPI_HW_INT   (PAPI_PRESET_MASK | 0x29) /* hardware interrupts */
#define PAPI_BR_UCN   (PAPI_PRESET_MASK | 0x2a) /* unconditional branches */
#define PAPI_BR_CN    (PAPI_PRESET_MASK | 0x2b) /* conditional branches */
#define PAPI_BR_TKN   (PAPI_PRESET_MASK | 0x2c) /* conditional branches taken */
#define PAPI_BR_NTK   (PAPI_PRESET_MASK | 0x2d) /* conditional branches not taken */
#define PAPI_BR_MSP   (PAPI_PRESET_MASK | 0x2e) /* conditional branches mispredicted */
#define PAPI_BR_PRC   (PAPI_PRESET_MASK | 0x2f) /* conditional branches predicted */
#define PAPI_FMA_INS  (PAPI_PRESET_MASK | 0x30) /* fused multiply-add instructions */
#define PAPI_TOT_IIS  (PAPI_PRESET_MASK | 0x31) /* instructions issued */
#define PAPI_TOT_INS  (PAPI_PRESET_MASK | 0x32) /* instructions completed */
#define PAPI_INT_INS  (PAPI_PRESET_MASK | 0x33) /* integer instructions */
#define PAPI_FP_INS   (PAPI_PRESET_MASK | 0x34) /* floating-point instructions */
#define PAPI_LD_INS   (PAPI_PRESET_MASK | 0x35) /* load instructions */
#define PAPI_SR_INS   (PAPI_PRESET_MASK | 0x36) /* store instructions */
#define PAPI_BR_INS   (PAPI_PRESET_MASK | 0x37) /* branch instructions */
#define PAPI_VEC_INS  (PAPI_PRESET_MASK | 0x38) /* vector instructions */
#define PAPI_RES_STL  (PAPI_PRESET_MASK | 0x39) /* cycles stalled for any resource */
#define PAPI_FP_STAL  (PAPI_PRESET_MASK | 0x3a) /* cycles in which floating-point units stall */
#define PAPI_TOT_CYC  (PAPI_PRESET_MASK | 0x3b) /* cycles */
#define PAPI_LST_INS  (PAPI_PRESET_MASK | 0x3c) /* load and store instructions */
#define PAPI_SYC_INS  (PAPI_PRESET_MASK | 0x3d) /* synchronization instructions */
#define PAPI_L1_DCH   (PAPI_PRESET_MASK | 0x3e) /* level 1 data cache hits */
#define PAPI_L2_DCH   (PAPI_PRESET_MASK | 0x3f) /* level 2 data cache hits */
#define PAPI_L1_DCA   (PAPI_PRESET_MASK | 0x40) /* level 1 data cache accesses */
#define PAPI_L2_DCA   (PAPI_PRESET_MASK | 0x41) /* level 2 data cache accesses */
#define PAPI_L3_DCA   (PAPI_PRESET_MASK | 0x42) /* level 3 data cache accesses */
#define PAPI_L1_DCR   (PAPI_PRESET_MASK | 0x43) /* level 1 data cache reads */
#define PAPI_L2_DCR   (PAPI_PRESET_MASK | 0x44) /* level 2 data cache reads */
#define PAPI_L3_DCR   (PAPI_PRESET_MASK | 0x45) /* level 3 data cache reads */
#define PAPI_L1_DCW   (PAPI_PRESET_MASK | 0x46) /* level 1 data cache writes */
#define PAPI_L2_DCW   (PAPI_PRESET_MASK | 0x47) /* level 2 data cache writes */
#define PAPI_L3_DCW   (PAPI_PRESET_MASK | 0x48) /* level 3 data cache writes */
#define PAPI_L1_ICH   (PAPI_PRESET_MASK | 0x49) /* level 1 instruction cache hits */
#define PAPI_L2_ICH   (PAPI_PRESET_MASK | 0x4a) /* level 2 instruction cache hits */
#define PAPI_L3_ICH   (PAPI_PRESET_MASK | 0x4b) /* level 3 instruction cache hits */
#define PAPI_L1_ICA   (PAPI_PRESET_MASK | 0x4c) /* level 1 instruction cache accesses */
#define PAPI_L2_ICA   (PAPI_PRESET_MASK | 0x4d) /* level 2 instruction cache accesses */
#define PAPI_L3_ICA   (PAPI_PRESET_MASK | 0x4e) /* level 3 instruction cache accesses */
#define PAPI_L1_ICR   (PAPI_PRESET_MASK | 0x4f) /* level 1 instruction cache reads */
#define PAPI_L2_ICR   (PAPI_PRESET_MASK | 0x50) /* level 2 instruction cache reads */
#define PAPI_L3_ICR   (PAPI_PRESET_MASK | 0x51) /* level 3 instruction cache reads */
#define PAPI_L1_ICW   (PAPI_PRESET_MASK | 0x52) /* level 1 instruction cache writes */
#define PAPI_L2_ICW   (PAPI_PRESET_MASK | 0x53) /* level 2 instruction cache writes */
#define PAPI_L3_ICW   (PAPI_PRESET_MASK | 0x54) /* level 3 instruction cache writes */
#define PAPI_L1_TCH   (PAPI_PRESET_MASK | 0x55) /* level 1 cache hits */
#define PAPI_L2_TCH   (PAPI_PRESET_MASK | 0x56) /* level 2 cache hits */
#define PAPI_L3_TCH   (PAPI_PRESET_MASK | 0x57) /* level 3 cache hits */
#define PAPI_L1_TCA   (PAPI_PRESET_MASK | 0x58) /* level 1 cache accesses */
#define PAPI_L2_TCA   (PAPI_PRESET_MASK | 0x59) /* level 2 cache accesses */
#define PAPI_L3_TCA   (PAPI_PRESET_MASK | 0x5a) /* level 3 cache accesses */
#define PAPI_L1_TCR   (PAPI_PRESET_MASK | 0x5b) /* level 1 cache reads */
#define PAPI_L2_TCR   (PAPI_PRESET_MASK | 0x5c) /* level 2 cache reads */
#define PAPI_L3_TCR   (PAPI_PRESET_MASK | 0x5d) /* level 3 cache reads */
#define PAPI_L1_TCW   (PAPI_PRESET_MASK | 0x5e) /* level 1 cache writes */
#define PAPI_L2_TCW   (PAPI_PRESET_MASK | 0x5f) /* level 2 cache writes */
#define PAPI_L3_TCW   (PAPI_PRESET_MASK | 0x60) /* level 3 cache writes */
#define PAPI_FML_INS  (PAPI_PRESET_MASK | 0x61) /* floating-point multiplications */
#define PAPI_FAD_INS  (PAPI_PRESET_MASK | 0x62) /* floating-point additions */
#define PAPI_FDV_INS  (PAPI_PRESET_MASK | 0x63) /* floating-point divisions */
#define PAPI_FSQ_INS  (PAPI_PRESET_MASK | 0x64) /* floating-point square roots */
#define PAPI_FNV_INS  (PAPI_PRESET_MASK | 0x65) /* floating-point inversions */
#define PAPI_FP_OPS   (PAPI_PRESET_MASK | 0x66) /* floating-point operations */
#define PAPI_SP_OPS   (PAPI_PRESET_MASK | 0x67) /* single-precision operations */
#define PAPI_DP_OPS   (PAPI_PRESET_MASK | 0x68) /* double-precision operations */
#define PAPI_VEC_SP   (PAPI_PRESET_MASK | 0x69) /* single-precision vector instructions */
#define PAPI_VEC_DP   (PAPI_PRESET_MASK | 0x6a) /* double-precision vector instructions */
#define PAPI_REF_CYC  (PAPI_PRESET_MASK | 0x6b) /* reference cycles */
#define PAPI_END      (PAPI_PRESET_MASK | 0x6c) /* one more than the last */

#endif
