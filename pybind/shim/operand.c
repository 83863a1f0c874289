/* The memory operand of x86-64 instructions, as far as compilers and the C library use them to load and store: moves, arithmetic and
   comparisons of general and vector registers, with masks, and REP MOVS and STOS. An instruction whose length of operand is
   not known here counts as one byte.

   References: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapters 2 (formats, ModRM, VEX, EVEX) and appendix A
   (opcode maps); volume 1, chapter 13 (XSAVE). */
#define _GNU_SOURCE
#include "operand.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <string.h>
#include <ucontext.h>

/* In the XSAVE area: the mask registers, the upper halves of YMM and of ZMM 0 to 15, and ZMM 16 to 31. */
static unsigned mask_offset, high_offset, zmm_offset, more_offset;

void operand_setup(void) {
  unsigned a, b, c, d;
  if (__get_cpuid_count(13, 2, &a, &b, &c, &d) && a) high_offset = b;
  if (__get_cpuid_count(13, 5, &a, &b, &c, &d) && a) mask_offset = b;
  if (__get_cpuid_count(13, 6, &a, &b, &c, &d) && a) zmm_offset = b;
  if (__get_cpuid_count(13, 7, &a, &b, &c, &d) && a) more_offset = b;
}

enum { MOST_BYTES = 15 }; /* of an instruction */

/* What has been read of an instruction. */
typedef struct {
  const uint8_t *p;
  const ucontext_t *context;
  int rex_w, rex_r, rex_x, rex_b, size16, f2, f3;
  int vex, evex, map, pp, length; /* length: of the vector, in bytes */
  int mask, broadcast, vvvv, high_index;
  uint8_t opcode;
} instruction;

static int64_t reg(const instruction *i, int number) {
  static const int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return i->context->uc_mcontext.gregs[order[number]];
}

static void prefixes(instruction *i) {
  for (;; i->p++) switch (*i->p) {
      case 0x66:
        i->size16 = 1;
        break;
      case 0xf2:
        i->f2 = 1;
        break;
      case 0xf3:
        i->f3 = 1;
        break;
      case 0x2e:
      case 0x36:
      case 0x3e:
      case 0x26:
      case 0xf0:
        break;
      default:
        return;
    }
}

static void format(instruction *i) {
  static const int lengths[] = {16, 32, 64, 64};
  prefixes(i);
  uint8_t b = *i->p;
  if (b == 0xc5) { /* VEX, two bytes */
    i->vex = 1, i->map = 1;
    i->rex_r = !(i->p[1] & 0x80);
    i->vvvv = ~(i->p[1] >> 3) & 15, i->length = lengths[i->p[1] >> 2 & 1], i->pp = i->p[1] & 3;
    i->opcode = i->p[2], i->p += 3;
  } else if (b == 0xc4) {
    i->vex = 1;
    i->rex_r = !(i->p[1] & 0x80), i->rex_x = !(i->p[1] & 0x40), i->rex_b = !(i->p[1] & 0x20), i->map = i->p[1] & 31;
    i->rex_w = i->p[2] >> 7, i->vvvv = ~(i->p[2] >> 3) & 15, i->length = lengths[i->p[2] >> 2 & 1], i->pp = i->p[2] & 3;
    i->opcode = i->p[3], i->p += 4;
  } else if (b == 0x62) {
    i->vex = i->evex = 1;
    i->rex_r = !(i->p[1] & 0x80), i->rex_x = !(i->p[1] & 0x40), i->rex_b = !(i->p[1] & 0x20), i->map = i->p[1] & 7;
    i->rex_w = i->p[2] >> 7, i->pp = i->p[2] & 3;
    i->high_index = !(i->p[3] & 8);
    i->length = lengths[i->p[3] >> 5 & 3], i->broadcast = i->p[3] >> 4 & 1, i->mask = i->p[3] & 7;
    i->opcode = i->p[4], i->p += 5;
  } else {
    if ((b & 0xf0) == 0x40) {
      i->rex_w = b >> 3 & 1, i->rex_r = b >> 2 & 1, i->rex_x = b >> 1 & 1, i->rex_b = b & 1;
      b = *++i->p;
    }
    i->pp = i->f3 ? 2 : i->f2 ? 3 : i->size16;
    if (b == 0x0f) {
      i->map = 1, b = *++i->p;
      if (b == 0x38 || b == 0x3a) i->map = b == 0x38 ? 2 : 3, b = *++i->p;
    }
    i->opcode = b, i->p++;
    i->length = 16;
  }
}

/* The same for instructions with numbers of 16 bits (maps 5 and 6). */
static int half_bytes(const instruction *i) {
  int n = i->length, scalar = i->pp == 2;
  if (i->map == 6)
    return i->broadcast || (i->opcode >= 0x96 && (i->opcode & 9) == 9) ? 2
           : i->opcode == 0x13                                         ? (i->pp ? n / 2 : 2)
                                                                       : n;
  switch (i->opcode) {
    case 0x2a:
    case 0x7b:
      return scalar ? (i->rex_w ? 8 : 4) : i->broadcast ? 2 : n;
    case 0x2e:
    case 0x2f:
    case 0x6e:
    case 0x7e:
      return 2;
    case 0x5a:
      return i->pp == 3 ? 8 : scalar ? 2 : i->pp == 1 ? (i->broadcast ? 8 : n) : i->broadcast ? 2 : n / 4;
    case 0x5b:
      return i->pp == 0 ? (i->broadcast ? (i->rex_w ? 8 : 4) : n) : i->broadcast ? 2 : n / 2;
  }
  return scalar || i->broadcast ? 2 : n;
}

/* The bytes of an element that is gathered, scattered, compressed or expanded; 0 for other instructions. */
static int scattered(const instruction *i) {
  int op = i->opcode;
  if (!i->vex || i->map != 2 || i->pp != 1) return 0;
  if ((op >= 0x90 && op <= 0x93) || (i->evex && ((op >= 0xa0 && op <= 0xa3) || (op >= 0x88 && op <= 0x8b))))
    return i->rex_w ? 8 : 4;
  return i->evex && (op == 0x62 || op == 0x63) ? (i->rex_w ? 2 : 1) : 0;
}

/* Whether an instruction shifts all elements by one number, which is in memory. */
static int shifts_by_one(const instruction *i) {
  return i->map == 1 && memchr("\xd1\xd2\xd3\xe1\xe2\xf1\xf2\xf3", i->opcode, 8) != NULL;
}

/* The bytes of the operand of an instruction with vector registers; also of those of SSE. */
static int vector_bytes(const instruction *i) {
  int n = i->length, element = i->rex_w ? 8 : 4;
  if (i->map > 4) return half_bytes(i);
  if (i->broadcast) return element;
  if (shifts_by_one(i)) return i->pp || i->vex ? 16 : 8;
  if (i->map == 1) switch (i->opcode) {
      case 0x10:
      case 0x11:
      case 0x51:
      case 0x58:
      case 0x59:
      case 0x5c:
      case 0x5d:
      case 0x5e:
      case 0x5f:
      case 0xc2:
        return i->pp == 2 ? 4 : i->pp == 3 ? 8 : n;
      case 0x12:
      case 0x16:
        return i->pp > 1 ? (i->pp == 3 && n == 16 ? 8 : n) : 8;
      case 0x13:
      case 0x17:
      case 0xd6:
        return 8;
      case 0x2a:
      case 0x2c:
      case 0x2d:
        return i->opcode == 0x2a ? (i->pp > 1 ? element : 8) : i->pp == 2 ? 4 : 8;
      case 0x2e:
      case 0x2f:
        return i->pp == 1 ? 8 : 4;
      case 0x5a:
        return i->pp == 2 ? 4 : i->pp == 3 ? 8 : i->pp == 0 ? n / 2 : n;
      case 0x5b:
        return n;
      case 0x6e:
        return element;
      case 0x7e:
        return i->pp == 2 ? 8 : element;
      case 0x6f:
      case 0x7f:
        return i->pp || i->vex ? n : 8;
      case 0x78:
        return i->pp > 1 ? (i->pp == 2 ? 4 : 8) : i->pp == 1 && !i->rex_w ? n / 2 : n;
      case 0x79:
      case 0x7b:
        if (i->pp > 1) return i->opcode == 0x7b ? element : i->pp == 2 ? 4 : 8;
        return i->pp == 1 && !i->rex_w ? n / 2 : n;
      case 0x7a:
        return i->pp != 3 && !i->rex_w ? n / 2 : n;
      case 0xe6:
        return i->pp == 2 && !(i->evex && i->rex_w) ? n / 2 : n;
      case 0xc4:
        return 2;
      case 0x90:
      case 0x91: /* KMOV */
        return i->rex_w ? (i->pp == 1 ? 4 : 8) : i->pp == 1 ? 1 : 2;
      default:
        return i->pp || i->vex || i->opcode < 0x60 || i->opcode == 0xc6 ? n : 8;
    }
  if (i->map == 2) switch (i->opcode) {
      case 0x18:
      case 0x58:
        return 4;
      case 0x19:
      case 0x59:
        return 8;
      case 0x1a:
      case 0x5a:
        return 16;
      case 0x1b:
      case 0x5b:
        return 32;
      case 0x78:
        return 1;
      case 0x79:
        return 2;
      case 0x20:
      case 0x23:
      case 0x25:
      case 0x30:
      case 0x33:
      case 0x35:
      case 0x13:
        return n / 2;
      case 0x21:
      case 0x24:
      case 0x31:
      case 0x34:
        return n / 4;
      case 0x22:
      case 0x32:
        return n / 8;
      case 0xf2:
      case 0xf3:
      case 0xf5:
      case 0xf6:
      case 0xf7:
        return element; /* of general registers */
      case 0xf0:
      case 0xf1:
        return i->f2 && i->opcode == 0xf0 ? 1 : i->rex_w ? 8 : i->size16 ? 2 : 4; /* CRC32 of a byte; the same, MOVBE */
      default:
        return i->opcode >= 0x96 && i->opcode <= 0xbf && (i->opcode & 9) == 9 ? element : n; /* FMA of scalars */
    }
  switch (i->opcode) { /* map 3 */
    case 0x18:
    case 0x19:
    case 0x38:
    case 0x39:
      return 16;
    case 0x1a:
    case 0x1b:
    case 0x3a:
    case 0x3b:
      return 32;
    case 0x1d:
      return n / 2;
    case 0x14:
    case 0x20:
      return 1;
    case 0x15:
      return 2;
    case 0x16:
    case 0x17:
    case 0x22:
    case 0x21:
      return element;
    case 0xf0:
      return element;
    case 0x0a:
      return 4;
    case 0x0b:
      return 8;
    default:
      return n;
  }
}

static int general_bytes(const instruction *i) {
  int n = i->rex_w ? 8 : i->size16 ? 2 : 4;
  if (i->map == 1) switch (i->opcode) {
      case 0xb6:
      case 0xbe:
      case 0xb0:
      case 0xc0:
        return 1;
      case 0xb7:
      case 0xbf:
        return 2;
      case 0xc7:
        return i->rex_w ? 16 : 8; /* CMPXCHG16B, CMPXCHG8B */
      default:
        return i->opcode >= 0x90 && i->opcode <= 0x9f ? 1 : n;
    }
  if (i->opcode == 0x63) return 4;
  if (i->opcode >= 0xd8 && i->opcode <= 0xdf) { /* x87 */
    static const uint8_t bytes[8][8] = {
        {4, 4, 4, 4, 4, 4, 4, 4}, {4, 4, 4, 4, 28, 2, 28, 2},   {4, 4, 4, 4, 4, 4, 4, 4}, {4, 4, 4, 4, 4, 10, 4, 10},
        {8, 8, 8, 8, 8, 8, 8, 8}, {8, 8, 8, 8, 108, 8, 108, 2}, {2, 2, 2, 2, 2, 2, 2, 2}, {2, 2, 2, 2, 10, 8, 10, 8}};
    return bytes[i->opcode - 0xd8][*i->p >> 3 & 7];
  }
  return i->opcode & 1 ? n : 1;
}

/* Whether map 1 of instructions without VEX has vector registers there. */
static int has_vectors(uint8_t opcode) {
  return opcode >= 0x10 && opcode <= 0x17 || opcode >= 0x28 && opcode <= 0x2f || opcode >= 0x50 && opcode <= 0x7f ||
         opcode >= 0xc2 && opcode <= 0xc6 && opcode != 0xc3 || opcode >= 0xd0;
}

/* The address of the operand that ModRM names, 0 if it names none. */
static uintptr_t effective(instruction *i, int bytes, int immediate) {
  uint8_t modrm = *i->p++;
  int mod = modrm >> 6, rm = modrm & 7;
  if (mod == 3) return 0;
  int64_t at = 0;
  if (rm == 4) {
    uint8_t sib = *i->p++;
    int index = (sib >> 3 & 7) | i->rex_x << 3, base = sib & 7;
    if (index != 4) at += reg(i, index) << (sib >> 6);
    if (base == 5 && mod == 0) {
      int32_t disp;
      memcpy(&disp, i->p, 4);
      return (uintptr_t)(at + disp);
    }
    at += reg(i, base | i->rex_b << 3);
  } else if (rm == 5 && mod == 0) {
    int32_t disp;
    memcpy(&disp, i->p, 4);
    return (uintptr_t)(i->p + 4 + immediate + disp);
  } else {
    at += reg(i, rm | i->rex_b << 3);
  }
  if (mod == 1) {
    at += (int64_t)(int8_t)*i->p * (i->evex ? bytes : 1);
  } else if (mod == 2) {
    int32_t disp;
    memcpy(&disp, i->p, 4);
    at += disp;
  }
  return (uintptr_t)at;
}

/* Narrows the bytes of a vector to those from the first to the last element that a mask selects. */
static void masked(uintptr_t *at, uint64_t *bytes, uint64_t mask, int element) {
  uint64_t elements = *bytes / element;
  if (elements < 64) mask &= (1ull << elements) - 1;
  if (!mask) return;
  int first = __builtin_ctzll(mask), last = 63 - __builtin_clzll(mask);
  *at += (uintptr_t)(first * element);
  *bytes = (uint64_t)((last - first + 1) * element);
}

/* Copies a vector register; returns whether it is known. */
static int vector(const instruction *i, int number, uint8_t v[64]) {
  const uint8_t *area = (const uint8_t *)i->context->uc_mcontext.fpregs;
  if (!area || !high_offset || (i->evex && (!zmm_offset || !more_offset))) return 0;
  memset(v, 0, 64);
  if (number >= 16) {
    memcpy(v, area + more_offset + 64 * (number - 16), 64);
    return 1;
  }
  memcpy(v, area + 160 + 16 * number, 16);
  memcpy(v + 16, area + high_offset + 16 * number, 16);
  if (zmm_offset) memcpy(v + 32, area + zmm_offset + 32 * number, 32);
  return 1;
}

/* The bits of a vector register that AVX's masked moves take for a mask: the highest of each element. */
static uint64_t vector_mask(const instruction *i, int element) {
  uint8_t v[64];
  if (!vector(i, i->vvvv, v)) return ~0ull;
  uint64_t mask = 0;
  for (int k = 0; k < i->length / element; k++) mask |= (uint64_t)(v[(k + 1) * element - 1] >> 7) << k;
  return mask;
}

/* The mask register of an instruction, all bits set if it has none. */
static uint64_t mask_of(const instruction *i) {
  uint64_t mask = ~0ull;
  if (i->mask && mask_offset && i->context->uc_mcontext.fpregs)
    memcpy(&mask, (const char *)i->context->uc_mcontext.fpregs + mask_offset + 8 * i->mask, 8);
  return mask;
}

/* The elements of a gather or scatter. If they are not evenly spaced, only the one at the address. */
static operand_bytes lanes_of(instruction *i, uintptr_t address, int element) {
  operand_bytes one = {.at = address, .bytes = (uint64_t)element, .count = 1};
  uint8_t modrm = *i->p++, sib = *i->p++, v[64];
  int mod = modrm >> 6, base = (sib & 7) | i->rex_b << 3, wide = i->opcode & 1 ? 8 : 4;
  if ((modrm & 7) != 4 || mod == 3) return one;
  int64_t start = (sib & 7) == 5 && mod == 0 ? 0 : reg(i, base);
  if (mod == 1) {
    start += (int64_t)(int8_t)*i->p * (i->evex ? element : 1);
  } else if (mod == 2 || (sib & 7) == 5) {
    int32_t disp;
    memcpy(&disp, i->p, 4);
    start += disp;
  }
  if (!vector(i, (sib >> 3 & 7) | i->rex_x << 3 | (i->evex ? i->high_index << 4 : 0), v)) return one;
  uint64_t mask = i->evex ? mask_of(i) : vector_mask(i, element);
  int64_t low = 0, last = 0, step = 0;
  int n = 0, even = 1;
  for (int k = 0; k < i->length / (element > wide ? element : wide); k++) {
    int32_t narrow;
    int64_t index;
    if (!(mask >> k & 1)) continue;
    if (wide == 4) {
      memcpy(&narrow, v + 4 * k, 4);
      index = narrow;
    } else {
      memcpy(&index, v + 8 * k, 8);
    }
    int64_t at = start + index * (1 << (sib >> 6));
    if (address - (uint64_t)at < (uint64_t)element) one.at = (uintptr_t)at;
    if (n == 1) step = at - last;
    if (n > 1 && at - last != step) even = 0;
    if (n++ == 0 || at < low) low = at;
    last = at;
  }
  uint64_t distance = (uint64_t)(step < 0 ? -step : step);
  if (!even || n < 2 || distance < (uint64_t)element) return one;
  if (distance == (uint64_t)element)
    return (operand_bytes){.at = (uintptr_t)low, .bytes = (uint64_t)(n * element), .count = 1};
  return (operand_bytes){.at = (uintptr_t)low, .bytes = (uint64_t)element, .count = (uint64_t)n, .stride = distance};
}

/* How many bytes of memory a bit of an instruction's mask stands for, 0 if its mask does not choose bytes of memory. */
static int masked_element(const instruction *i, int bytes) {
  static const int lanes[] = {2, 4, 8, 4, 8, 8};
  int op = i->opcode, low = op & 15, wide = i->rex_w ? 8 : 4;
  if (i->broadcast || shifts_by_one(i)) return 0;
  if (i->map == 1 && (op == 0x6f || op == 0x7f) && i->pp == 3) return wide / 4;
  if (i->map == 2 && low < 6 && ((op >= 0x20 && op <= 0x35) || (op >= 0x10 && op <= 0x15 && i->pp == 2)))
    return bytes * lanes[low] / i->length; /* VPMOV: narrower in memory than in the register */
  if (i->map == 2 && ((op >= 0x18 && op <= 0x1b) || (op >= 0x58 && op <= 0x5b) || op == 0x78 || op == 0x79)) return 0;
  return i->map > 4 || (i->map == 2 && op == 0x13) || (i->map == 3 && op == 0x1d) ? 2 : wide;
}

operand_bytes operand_of(const void *context, uintptr_t address) {
  const ucontext_t *c = context;
  const uint8_t *start = (const uint8_t *)c->uc_mcontext.gregs[REG_RIP];
  instruction i = {.p = start, .context = c};
  format(&i);
  if (!i.vex && i.map == 0 && (i.opcode == 0xa4 || i.opcode == 0xa5 || i.opcode == 0xaa || i.opcode == 0xab)) {
    int each = i.opcode & 1 ? (i.rex_w ? 8 : i.size16 ? 2 : 4) : 1;
    uint64_t n = (uint64_t)each * (i.f3 || i.f2 ? (uint64_t)reg(&i, 1) : 1);
    uintptr_t from = (uintptr_t)reg(&i, 6), to = (uintptr_t)reg(&i, 7);
    int down = c->uc_mcontext.gregs[REG_EFL] >> 10 & 1;
    if (down || !n) return (operand_bytes){.at = address, .bytes = (uint64_t)each, .count = 1};
    return (operand_bytes){.at = address - to < n ? to : from,
                           .bytes = n,
                           .repeated = i.f3 || i.f2 ? each : 0,
                           .moves = i.opcode < 0xa8,
                           .length = (int)(i.p - start),
                           .count = 1};
  }
  int vectors = i.vex || i.map > 1 || (i.map == 1 && has_vectors(i.opcode)), element = scattered(&i);
  if (element && i.opcode >= 0x90) return lanes_of(&i, address, element);
  uint64_t bytes = (uint64_t)(vectors ? vector_bytes(&i) : general_bytes(&i));
  if (!vectors && i.map == 0 && i.opcode >= 0xa0 && i.opcode <= 0xa3)
    return (operand_bytes){.at = address, .bytes = bytes, .count = 1};
  uintptr_t at = effective(&i, element ? element : (int)bytes, 0);
  if (at - address + 64 > 128) at = address; /* not decoded */
  if (element) {                             /* compressed: without gaps */
    uint64_t mask = mask_of(&i), n = bytes / (uint64_t)element;
    bytes = (uint64_t)element * (uint64_t)__builtin_popcountll(n < 64 ? mask & ((1ull << n) - 1) : mask);
  } else if (i.evex && i.mask) {
    if ((element = masked_element(&i, (int)bytes))) masked(&at, &bytes, mask_of(&i), element);
  } else if (!i.evex && i.vex && i.map == 2 &&
             ((i.opcode >= 0x2c && i.opcode <= 0x2f) || i.opcode == 0x8c || i.opcode == 0x8e)) {
    element = i.opcode >= 0x80 ? (i.rex_w ? 8 : 4) : i.opcode & 1 ? 8 : 4;
    masked(&at, &bytes, vector_mask(&i, element), element);
  }
  return (operand_bytes){.at = at, .bytes = bytes ? bytes : 1, .count = 1};
}

/* The bytes of the immediate operand behind an instruction that loads or stores, -1 for one that is not known or may not be moved. ModRM's
   middle bits are part of some opcodes. */
static int immediate_bytes(const instruction *i) {
  int op = i->opcode, middle = *i->p >> 3 & 7, wide = i->size16 && !i->rex_w ? 2 : 4;
  if (i->map == 2 || i->map == 5 || i->map == 6) return i->vex || i->map == 2 ? 0 : -1;
  if (i->map == 3) return 1;
  if (i->map == 1) {
    if (i->vex || has_vectors((uint8_t)op))
      return op == 0xff || op == 0x77 || op == 0xae
                 ? -1
                 : (op >= 0x70 && op <= 0x73) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6);
    if ((op >= 0x40 && op <= 0x4f) || (op >= 0x90 && op <= 0x9f)) return 0; /* CMOV, SET */
    /* BT, SHLD, BTS, SHRD, IMUL, CMPXCHG, BTR, MOVZX, POPCNT, BTC, BSF, BSR, MOVSX, XADD, MOVNTI */
    if (memchr("\xa3\xa5\xab\xad\xaf\xb0\xb1\xb3\xb6\xb7\xb8\xbb\xbc\xbd\xbe\xbf\xc0\xc1\xc3", op, 19)) return 0;
    return op == 0xa4 || op == 0xac || op == 0xba ? 1 : -1; /* SHLD, SHRD; BT and the like */
  }
  if (i->map != 0) return -1;
  if (op < 0x40) return (op & 7) < 4 ? 0 : -1;              /* ADD to CMP */
  if (op >= 0xd8 && op <= 0xdf) return 0;                   /* x87 */
  if (op >= 0xd0 && op <= 0xd3) return 0;                   /* shifts */
  if (op >= 0x84 && op <= 0x8b) return 0;                   /* TEST, XCHG, MOV */
  if (op == 0xfe || op == 0xff) return middle < 2 ? 0 : -1; /* INC, DEC */
  switch (op) {
    case 0x63: /* MOVSXD */
      return 0;
    case 0x6b: /* IMUL, ADD to CMP, shifts */
    case 0x80:
    case 0x83:
    case 0xc0:
    case 0xc1:
      return 1;
    case 0x69: /* IMUL, ADD to CMP */
    case 0x81:
      return wide;
    case 0xc6: /* MOV */
      return middle ? -1 : 1;
    case 0xc7:
      return middle ? -1 : wide;
    case 0xf6: /* TEST; NOT, NEG, MUL, IMUL. DIV raises an exception where it is. */
    case 0xf7:
      return middle < 2 ? (op & 1 ? wide : 1) : middle < 6 ? 0 : -1;
  }
  return -1;
}

int movable_length(const uint8_t *start) {
  instruction i = {.p = start};
  format(&i);
  int immediate = immediate_bytes(&i), mod = *i.p >> 6, rm = *i.p & 7, length = (int)(i.p - start) + 1;
  if (immediate < 0 || mod == 3 || (mod == 0 && rm == 5))
    return 0; /* no memory; relative to the instruction's address */
  if (rm == 4) length++;
  if (mod == 2 || (mod == 0 && rm == 4 && (i.p[1] & 7) == 5)) length += 4;
  if (mod == 1) length++;
  length += immediate;
  return length <= MOST_BYTES ? length : 0;
}
#else
void operand_setup(void) {}
operand_bytes operand_of(const void *context, uintptr_t address) {
  return (operand_bytes){.at = address, .bytes = 1, .count = 1};
}
#endif
