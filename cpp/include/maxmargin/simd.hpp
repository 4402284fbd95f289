// MM_CLONES: compile a function for the portable baseline, AVX2 and AVX-512; the loader picks one.
//
// Put it on a non-inline, non-template function that holds the hot loop, so that everything called inside is
// inlined into each clone. The sanitizer build turns it off (sanitizers start after the loader has resolved clones).
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(MAXMARGIN_NO_CLONES)
#define MM_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define MM_CLONES
#endif

#define MM_RESTRICT __restrict__
