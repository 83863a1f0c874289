package kernelgen

import (
	"fmt"
	"strings"
)

var arm64 = Architecture{Name: "arm64", block: 16, combiner: neon, write: writeARM64, others: othersARM64}

// writeARM64 writes a loop over 64 bytes, and one over 16. R0 is the address of the result, the
// registers that follow those of the operands; R5 counts the bytes that are left.
func writeARM64(w *writer, c *combiner, operands int, _ bool) {
	w.line("MOVD n+40(FP), R5")
	w.line("MOVD to+0(FP), R0")
	for i := range operands {
		w.line("MOVD %s+%d(FP), R%d", operandNames[i], 8+8*i, 1+i)
	}
	for _, l := range c.constants {
		w.line("%s", l)
	}
	w.line("SUBS $64, R5")
	w.line("BLT  rest")
	w.label("loop")
	c.vectors(w, operands, 4)
	w.line("SUBS $64, R5")
	w.line("BGE  loop")
	w.label("rest")
	w.line("ADDS $64, R5")
	w.line("BEQ  done")
	w.label("one")
	c.vectors(w, operands, 1)
	w.line("SUBS $16, R5")
	w.line("BNE  one")
	w.label("done")
	w.line("RET")
}

// vectors writes the code for n vectors: those of acc are from V0 on, those of the operand
// from V4 on, and what follows is for use.
func (c *combiner) vectors(w *writer, operands, n int) {
	if c.vector != nil {
		for range n {
			c.vector(w, operands)
		}
		return
	}
	list := func(first int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("V%d.B16", first+i))
		}
		return "[" + strings.Join(names, ", ") + "]"
	}
	w.line("VLD1.P %d(R%d), %s", 16*n, operands, list(0))
	for operand := operands - 1; operand > 0; operand-- {
		w.line("VLD1.P %d(R%d), %s", 16*n, operand, list(4))
		for i := range n {
			c.combine(w, 4+i, i, []int{16 + 3*i, 17 + 3*i, 18 + 3*i})
		}
	}
	w.line("VST1.P %s, %d(R0)", list(0), 16*n)
}

// instruction is one that Go's assembler may not know: its encoding with all registers 0.
type instruction struct {
	code uint32
	text string // with {d}, {n} and {m} for the registers
}

func (w *writer) word(i instruction, d, n, m int) {
	text := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(i.text, "{d}", fmt.Sprint("v", d)),
		"{n}", fmt.Sprint("v", n)), "{m}", fmt.Sprint("v", m))
	w.line("WORD $0x%08x // %s", i.code|uint32(m)<<16|uint32(n)<<5|uint32(d), text)
}

// three returns an instruction on three registers with elements of a size: 0 for bytes to 3 for
// 8 bytes.
func three(name string, code uint32, size int) instruction {
	a := []string{"16b", "8h", "4s", "2d"}[size]
	return instruction{code | uint32(size)<<22, fmt.Sprintf("%s {d}.%s, {n}.%[2]s, {m}.%[2]s", name, a)}
}

// wide is three for floating-point numbers; size is 2 or 3.
func wide(name string, code uint32, size int) instruction {
	i := three(name, 0, size)
	i.code = code | uint32(size-2)<<22
	return i
}

func size(elem string) int {
	return map[string]int{"B": 0, "W": 1, "D": 2, "Q": 3}[letter(elem)]
}

var (
	andBytes = instruction{0x4e201c00, "and {d}.16b, {n}.16b, {m}.16b"}
	orrBytes = instruction{0x4ea01c00, "orr {d}.16b, {n}.16b, {m}.16b"}
	eorBytes = instruction{0x6e201c00, "eor {d}.16b, {n}.16b, {m}.16b"}
	bicBytes = instruction{0x4e601c00, "bic {d}.16b, {n}.16b, {m}.16b"}
	bitBytes = instruction{0x6ea01c00, "bit {d}.16b, {n}.16b, {m}.16b"}

	fcvtl  = instruction{0x0e217800, "fcvtl {d}.4s, {n}.4h"}
	fcvtl2 = instruction{0x4e217800, "fcvtl2 {d}.4s, {n}.8h"}
	fcvtn  = instruction{0x0e216800, "fcvtn {d}.4h, {n}.4s"}
	fcvtn2 = instruction{0x4e216800, "fcvtn2 {d}.8h, {n}.4s"}
)

// single returns a combiner of one instruction that takes acc before in.
func single(i instruction) *combiner {
	return &combiner{combine: func(w *writer, in, acc int, _ []int) { w.word(i, acc, acc, in) }}
}

func neon(op, elem string) *combiner {
	integer := strings.Contains(elem, "nt")
	switch {
	case op == "Band":
		return single(andBytes)
	case op == "Bor":
		return single(orrBytes)
	case op == "Bxor":
		return single(eorBytes)
	case op == "Land" || op == "Lor" || op == "Lxor":
		return logicalNEON(op, size(elem))
	case strings.HasPrefix(elem, "Complex"):
		return nil // Go fuses multiplications and additions: it's another result.
	case elem == "Float16" && (op == "Sum" || op == "Prod"):
		return halfNEON(op)
	case elem == "Float16":
		return shortFloatNEON(op, 0x7c00)
	case elem == "BFloat16" && (op == "Sum" || op == "Prod"):
		return brainNEON(op)
	case elem == "BFloat16":
		return shortFloatNEON(op, 0x7f80)
	case op == "Sum" && integer:
		return single(three("add", 0x4e208400, size(elem)))
	case op == "Prod" && integer:
		return productNEON(size(elem))
	case integer:
		return extremeNEON(op, elem)
	}
	s := map[string]int{"Float32": 2, "Float64": 3}[elem]
	switch op {
	case "Sum":
		return single(wide("fadd", 0x4e20d400, s))
	case "Prod":
		return single(wide("fmul", 0x6e20dc00, s))
	}
	return chooseNEON(op, wide("fcmgt", 0x6ea0e400, s))
}

// chooseNEON takes in where the comparison with acc says so.
func chooseNEON(op string, greater instruction) *combiner {
	return &combiner{combine: func(w *writer, in, acc int, t []int) {
		x, y := in, acc
		if op == "Min" {
			x, y = y, x
		}
		w.word(greater, t[0], x, y)
		w.word(bitBytes, acc, in, t[0])
	}}
}

func productNEON(size int) *combiner {
	if size < 3 {
		return single(three("mul", 0x4e209c00, size))
	}
	// 2**32 times the sum of the mixed products, and the product of the low halves.
	return &combiner{combine: func(w *writer, in, acc int, t []int) {
		w.word(instruction{0x4ea00800, "rev64 {d}.4s, {n}.4s"}, t[0], in, 0)
		w.word(three("mul", 0x4e209c00, 2), t[0], t[0], acc)
		w.word(instruction{0x6ea02800, "uaddlp {d}.2d, {n}.4s"}, t[0], t[0], 0)
		w.word(instruction{0x4f605400, "shl {d}.2d, {n}.2d, #32"}, t[0], t[0], 0)
		w.word(instruction{0x0ea12800, "xtn {d}.2s, {n}.2d"}, t[1], in, 0)
		w.word(instruction{0x0ea12800, "xtn {d}.2s, {n}.2d"}, t[2], acc, 0)
		w.word(instruction{0x2ea08000, "umlal {d}.2d, {n}.2s, {m}.2s"}, t[0], t[1], t[2])
		w.word(orrBytes, acc, t[0], t[0])
	}}
}

func extremeNEON(op, elem string) *combiner {
	signed := strings.HasPrefix(elem, "I")
	if size(elem) == 3 {
		if signed {
			return chooseNEON(op, three("cmgt", 0x4e203400, 3))
		}
		return chooseNEON(op, three("cmhi", 0x6e203400, 3))
	}
	name, code := "s", uint32(0x4e206400)
	if !signed {
		name, code = "u", 0x6e206400
	}
	if op == "Min" {
		code |= 0x800
	}
	return single(three(name+strings.ToLower(op), code, size(elem)))
}

// logicalNEON makes masks of what is not zero, and keeps one bit of them.
func logicalNEON(op string, size int) *combiner {
	test := three("cmtst", 0x4e208c00, size)
	bits := uint32(8) << size
	a := []string{"16b", "8h", "4s", "2d"}[size]
	shift := instruction{0x6f000400 | (bits+1)<<16, fmt.Sprintf("ushr {d}.%s, {n}.%[1]s, #%d", a, bits-1)}
	return &combiner{combine: func(w *writer, in, acc int, t []int) {
		if op == "Lor" {
			w.word(orrBytes, acc, acc, in)
			w.word(test, acc, acc, acc)
			w.word(shift, acc, acc, 0)
			return
		}
		w.word(test, t[0], in, in)
		w.word(test, acc, acc, acc)
		w.word(map[string]instruction{"Land": andBytes, "Lxor": eorBytes}[op], acc, acc, t[0])
		w.word(shift, acc, acc, 0)
	}}
}

// halfNEON converts to float32 and rounds after each operation.
func halfNEON(op string) *combiner {
	compute := wide("fadd", 0x4e20d400, 2)
	if op == "Prod" {
		compute = wide("fmul", 0x6e20dc00, 2)
	}
	return &combiner{combine: func(w *writer, in, acc int, t []int) {
		w.word(fcvtl, t[0], in, 0)
		w.word(fcvtl, t[1], acc, 0)
		w.word(fcvtl2, in, in, 0)
		w.word(fcvtl2, t[2], acc, 0)
		w.word(compute, t[0], t[1], t[0])
		w.word(compute, in, t[2], in)
		w.word(fcvtn, acc, t[0], 0)
		w.word(fcvtn2, acc, in, 0)
	}}
}

// shortFloatNEON compares floating-point numbers of 16 bits as integers that have the sign of
// the number: both zeros are 0. V30 has all bits but the sign, V31 the infinity.
func shortFloatNEON(op string, infinity int) *combiner {
	greater := three("cmgt", 0x4e203400, 1)
	sign := instruction{0x4f110400, "sshr {d}.8h, {n}.8h, #15"}
	subtract := three("sub", 0x6e208400, 1)
	return &combiner{
		constants: []string{"MOVD $0x7fff, R6", "VDUP R6, V30.H8", fmt.Sprintf("MOVD $%#x, R6", infinity), "VDUP R6, V31.H8"},
		combine: func(w *writer, in, acc int, t []int) {
			number := func(to, from int) { // -m is (m^-1)-(-1)
				w.word(sign, t[2], from, 0)
				w.word(eorBytes, to, to, t[2])
				w.word(subtract, to, to, t[2])
			}
			w.word(andBytes, t[0], in, 30)
			w.word(andBytes, t[1], acc, 30)
			number(t[0], in)
			number(t[1], acc)
			x, y := t[0], t[1]
			if op == "Min" {
				x, y = y, x
			}
			w.word(greater, t[0], x, y)
			for _, v := range []int{in, acc} { // not where one is not a number
				w.word(andBytes, t[1], v, 30)
				w.word(greater, t[1], t[1], 31)
				w.word(bicBytes, t[0], t[0], t[1])
			}
			w.word(bitBytes, acc, in, t[0])
		},
	}
}

// What code on bfloat16 has in registers: 0xffff0000, 1 and 0x7fff in each 32 bits.
var brainConstantsARM64 = []string{"MOVD $0xffff0000, R6", "VDUP R6, V29.S4", "MOVD $1, R6", "VDUP R6, V30.S4",
	"MOVD $0x7fff, R6", "VDUP R6, V31.S4"}

var (
	shl16  = instruction{0x4f305400, "shl {d}.4s, {n}.4s, #16"}
	ushr16 = instruction{0x6f300400, "ushr {d}.4s, {n}.4s, #16"}
)

// splitNEON writes the float32 of the even elements of a vector, and those of the odd ones.
func splitNEON(w *writer, from, even, odd int) {
	w.word(andBytes, odd, from, 29)
	w.word(shl16, even, from, 0)
}

// joinNEON is as joinBFloat16 of amd64.
func joinNEON(w *writer, even, odd, to, t int) {
	add := three("add", 0x4e208400, 2)
	for _, half := range []int{even, odd} {
		w.word(ushr16, t, half, 0)
		w.word(andBytes, t, t, 30)
		w.word(add, half, half, 31)
		w.word(add, half, half, t)
	}
	w.word(ushr16, even, even, 0)
	w.word(andBytes, odd, odd, 29)
	w.word(orrBytes, to, even, odd)
}

// brainNEON computes in float32 and rounds what comes of all operands.
func brainNEON(op string) *combiner {
	compute := wide("fadd", 0x4e20d400, 2)
	if op == "Prod" {
		compute = wide("fmul", 0x6e20dc00, 2)
	}
	return &combiner{constants: brainConstantsARM64, vector: func(w *writer, operands int) {
		w.line("VLD1.P 16(R%d), [V0.B16]", operands)
		splitNEON(w, 0, 1, 2)
		for operand := operands - 1; operand > 0; operand-- {
			w.line("VLD1.P 16(R%d), [V0.B16]", operand)
			splitNEON(w, 0, 3, 4)
			w.word(compute, 1, 1, 3)
			w.word(compute, 2, 2, 4)
		}
		joinNEON(w, 1, 2, 0, 3)
		w.line("VST1.P [V0.B16], 16(R0)")
	}}
}

var othersARM64 = []function{
	{
		name: "widenBFloat16(to, from unsafe.Pointer, n int)", frame: 24, comment: widenComment,
		write: func(w *writer) {
			loopARM64(w, func() {
				w.line("VLD1.P 16(R1), [V0.B16]")
				splitNEON(w, 0, 1, 2)
				w.line("VST1.P [V1.B16, V2.B16], 32(R0)")
			})
		},
	},
	{
		name: "narrowBFloat16(to, from unsafe.Pointer, n int)", frame: 24, comment: narrowComment,
		write: func(w *writer) {
			loopARM64(w, func() {
				w.line("VLD1.P 32(R1), [V1.B16, V2.B16]")
				joinNEON(w, 1, 2, 0, 3)
				w.line("VST1.P [V0.B16], 16(R0)")
			})
		},
	},
}

// loopARM64 writes a function from one address to another one: a loop that counts n down by 16,
// as long as something is left.
func loopARM64(w *writer, body func()) {
	w.line("MOVD to+0(FP), R0")
	w.line("MOVD from+8(FP), R1")
	w.line("MOVD n+16(FP), R5")
	for _, l := range brainConstantsARM64 {
		w.line("%s", l)
	}
	w.line("SUBS $16, R5")
	w.line("BLT  done")
	w.label("loop")
	body()
	w.line("SUBS $16, R5")
	w.line("BGE  loop")
	w.label("done")
	w.line("RET")
}
