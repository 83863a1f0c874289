/* Prints test vectors for the software arithmetic of longdouble.go, computed by
 * the processor (long double, 80-bit x87) or by libgcc (__float128):
 *
 *   cc -O0 -o extended extended.c && ./extended x87 500 > x87.txt
 *                                 && ./extended quad 500 > quad.txt
 *
 * A line has a, b, a+b, a*b as hexadecimal numbers (sign and exponent, then the
 * significand) and whether a < b. NaNs are printed as "nan". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef __x86_64__
#error "needs an x86 processor: its long double is one of the two formats"
#endif

typedef unsigned __int128 u128;
static uint64_t state = 88172645463325252ull;
static uint64_t rnd(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }

static const uint64_t sigs[] = {0x8000000000000000ull, 0x8000000000000001ull, 0xffffffffffffffffull, 0xfffffffffffffffeull, 0xc000000000000000ull};
static const int exps[] = {0x3fff, 0x4000, 0x3fff - 63, 0x3fff - 64, 0x3fff - 65, 0x3fff - 113, 0x7ffe, 1, 2, 0x2000, 0x1fff};
#define N(a) ((int)(sizeof(a) / sizeof *(a)))

typedef union { long double f; struct { uint64_t sig; uint16_t top; } b; u128 u; } x87;
typedef union { __float128 f; u128 u; } quad;

static x87 x87_make(uint16_t top, uint64_t sig) { x87 v; v.u = 0; v.b.sig = sig; v.b.top = top; return v; }
static x87 x87_edge(int i) {
    static const uint64_t sub[] = {0, 1, 2, 0x7fffffffffffffffull, 0x4000000000000000ull};
    uint16_t sign = i & 1 ? 0x8000 : 0;
    i /= 2;
    if (i < N(sub)) return x87_make(sign, sub[i]);
    if (i == N(sub)) return x87_make(sign | 0x7fff, 0x8000000000000000ull);
    if (i == N(sub) + 1) return x87_make(sign | 0x7fff, 0xc000000000000000ull);
    return x87_make(sign | exps[rnd() % N(exps)], sigs[rnd() % N(sigs)]);
}
static x87 x87_random(int near) {
    uint16_t e = near ? 0x3fff + rnd() % 70 - 35 : rnd() % 0x7fff;
    uint64_t sig = rnd();
    if (rnd() % 3 == 0) sig &= ~0ull << rnd() % 63;
    return x87_make((rnd() & 1) << 15 | e, e ? sig | 1ull << 63 : sig >> 1);
}

static quad quad_make(uint16_t top, u128 frac) { quad v; v.u = (u128)top << 112 | (frac & (((u128)1 << 112) - 1)); return v; }
static quad quad_edge(int i) {
    uint16_t sign = i & 1 ? 0x8000 : 0;
    i /= 2;
    switch (i) {
    case 0: case 1: case 2: return quad_make(sign, i);
    case 3: return quad_make(sign, ~(u128)0);
    case 4: return quad_make(sign | 0x7fff, 0);
    case 5: return quad_make(sign | 0x7fff, (u128)1 << 111);
    }
    static const int ones[] = {0, 1, 2};
    u128 f = ones[rnd() % 3];
    if (rnd() & 1) f = ~f;
    return quad_make(sign | exps[rnd() % N(exps)], f);
}
static quad quad_random(int near) {
    uint16_t e = near ? 0x3fff + rnd() % 130 - 65 : rnd() % 0x7fff;
    u128 f = (u128)rnd() << 64 | rnd();
    if (rnd() % 3 == 0) f &= ~(u128)0 << rnd() % 111;
    return quad_make((rnd() & 1) << 15 | e, f);
}

static void put(int isnan, unsigned top, uint64_t hi, uint64_t lo, int quad) {
    if (isnan) printf("nan ");
    else if (quad) printf("%04x%012llx%016llx ", top, (unsigned long long)hi, (unsigned long long)lo);
    else printf("%04x%016llx ", top, (unsigned long long)lo);
}
static void put_x87(x87 v) { put(v.f != v.f, v.b.top, 0, v.b.sig, 0); }
static void put_quad(quad v) { put(v.f != v.f, v.u >> 112, (uint64_t)(v.u >> 64) & 0xffffffffffffull, (uint64_t)v.u, 1); }

#define VECTOR(T) do { \
    T s, p; s.u = p.u = 0; s.f = a.f + b.f; p.f = a.f * b.f; \
    put_##T(a); put_##T(b); put_##T(s); put_##T(p); printf("%d\n", a.f < b.f); } while (0)
#define ALL(T) do { \
    for (int i = 0; i < 22; i++) for (int j = 0; j < 22; j++) { T a = T##_edge(i), b = T##_edge(j); VECTOR(T); } \
    for (int i = 0; i < n; i++) { T a = T##_random(i & 1), b = T##_random(i & 1); VECTOR(T); } } while (0)

int main(int argc, char **argv) {
    if (argc != 3) { fprintf(stderr, "usage: extended x87|quad RANDOM\n"); return 2; }
    int n = atoi(argv[2]);
    if (strcmp(argv[1], "quad") == 0) ALL(quad); else ALL(x87);
    return 0;
}
