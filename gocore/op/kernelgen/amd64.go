package kernelgen

import (
	"fmt"
	"strings"
)

var amd64 = Architecture{Name: "amd64", block: 32, combiner: avx2, write: writeAMD64, wide: avx512, writeWide: writeAVX512, streams: true,
	others: othersAMD64}

// unit is a block of 32 bytes of a kernel for amd64.
type unit struct {
	off      int
	operands []string // the registers of their addresses, the last operand first
	stream   bool     // the result goes past the caches, to an aligned address
}

func (u unit) at(operand string, more int) string {
	return fmt.Sprintf("%d(%s)(AX*1)", u.off+more, operand)
}

// store writes a register to the result, at an offset in the unit.
func (u unit) store(w *writer, register string, more int) {
	move := "VMOVDQU"
	switch {
	case u.stream:
		move = "VMOVNTDQ"
	case register[0] == 'Z':
		move = "VMOVDQU64"
	}
	w.line("%s %s, %s", move, register, u.at(destination, more))
}

const destination = "DI"

var operandRegisters = []string{"SI", "DX", "CX", "BX"}

// writeAMD64 writes a loop over 64 bytes, and what is left of 32. AX counts from -n up to 0, and
// the addresses are those of the ends.
func writeAMD64(w *writer, c *combiner, operands int, stream bool) {
	reversed := addressesAMD64(w, operands)
	for _, l := range c.constants {
		w.line("%s", l)
	}
	w.line("NEGQ AX")
	w.line("ADDQ $64, AX")
	w.line("JGT  rest")
	w.line("PCALIGN $32")
	w.label("loop")
	c.block(w, unit{-64, reversed, stream}, 0)
	c.block(w, unit{-32, reversed, stream}, 1)
	w.line("ADDQ $64, AX")
	w.line("JLE  loop")
	w.label("rest")
	w.line("CMPQ AX, $64")
	w.line("JGE  done")
	c.block(w, unit{-64, reversed, stream}, 0)
	w.label("done")
	w.line("VZEROUPPER")
	w.line("RET")
}

// addressesAMD64 loads AX and the addresses of the ends, and returns the registers of the operands, the last one first.
func addressesAMD64(w *writer, operands int) (reversed []string) {
	w.line("MOVQ n+40(FP), AX")
	registers := operandRegisters[:operands]
	w.line("MOVQ to+0(FP), %s", destination)
	for i, r := range registers {
		w.line("MOVQ %s+%d(FP), %s", operandNames[i], 8+8*i, r)
	}
	for _, r := range append([]string{destination}, registers...) {
		w.line("ADDQ AX, %s", r)
	}
	for i := range registers {
		reversed = append(reversed, registers[operands-1-i])
	}
	return reversed
}

// block writes the code for one unit; which chooses the registers.
func (c *combiner) block(w *writer, u unit, which int) {
	if c.unit != nil {
		c.unit(w, u)
		return
	}
	acc, in := which, 2+which
	w.line("VMOVDQU %s, Y%d", u.at(u.operands[0], 0), acc)
	for _, operand := range u.operands[1:] {
		if c.memory != "" {
			w.line("%s %s, Y%d, Y%[3]d", c.memory, u.at(operand, 0), acc)
			continue
		}
		w.line("VMOVDQU %s, Y%d", u.at(operand, 0), in)
		c.combine(w, in, acc, []int{4 + 4*which, 5 + 4*which, 6 + 4*which, 7 + 4*which})
	}
	u.store(w, fmt.Sprint("Y", acc), 0)
}

// letter is the suffix of instructions on integers of a size.
func letter(elem string) string {
	switch strings.TrimLeft(elem, "UIint") {
	case "8":
		return "B"
	case "16":
		return "W"
	case "32":
		return "D"
	}
	return "Q"
}

// Constants are in the registers from Y12 on.
var (
	allOnes   = "VPCMPEQD Y15, Y15, Y15"
	zeroInY14 = "VPXOR Y14, Y14, Y14"
)

func avx2(op, elem string) *combiner {
	integer := strings.Contains(elem, "nt")
	switch {
	case op == "Band" || op == "Bor" || op == "Bxor":
		return &combiner{memory: map[string]string{"Band": "VPAND", "Bor": "VPOR", "Bxor": "VPXOR"}[op]}
	case op == "Land" || op == "Lor" || op == "Lxor":
		return logicalAVX2(op, letter(elem))
	case elem == "Float16" && (op == "Sum" || op == "Prod"):
		return halfAVX2(map[string]string{"Sum": "VADDPS", "Prod": "VMULPS"}[op])
	case elem == "Float16":
		return shortFloatAVX2(op, 11, 10) // 0x7c00
	case elem == "BFloat16" && (op == "Sum" || op == "Prod"):
		return brainAVX2(map[string]string{"Sum": "VADDPS", "Prod": "VMULPS"}[op])
	case elem == "BFloat16":
		return shortFloatAVX2(op, 8, 7) // 0x7f80
	case elem == "Complex64" && op == "Prod":
		return complex64AVX2()
	case elem == "Complex128" && op == "Prod":
		return complex128AVX2()
	case op == "Sum" && integer:
		return &combiner{memory: "VPADD" + letter(elem)}
	case op == "Prod" && integer:
		return productAVX2(letter(elem))
	case integer:
		return extremeAVX2(op, elem)
	}
	suffix := map[string]string{"Float32": "PS", "Float64": "PD"}[elem]
	switch op {
	case "Sum":
		return &combiner{memory: "VADD" + suffix}
	case "Prod":
		return &combiner{memory: "VMUL" + suffix}
	}
	// The second source, which is acc, is the result where the numbers do not compare or are equal.
	return &combiner{combine: func(w *writer, in, acc int, _ []int) {
		w.line("V%s%s Y%d, Y%d, Y%[3]d", strings.ToUpper(op), suffix, acc, in)
	}}
}

func productAVX2(letter string) *combiner {
	switch letter {
	case "B": // Words of the even bytes, and of the odd ones, of which one factor is 256 times as large.
		return &combiner{
			constants: []string{allOnes, "VPSRLW $8, Y15, Y15"},
			combine: func(w *writer, in, acc int, t []int) {
				w.line("VPMULLW Y%d, Y%d, Y%d", in, acc, t[0])
				w.line("VPANDN Y%d, Y15, Y%d", in, t[1])
				w.line("VPSRLW $8, Y%d, Y%d", acc, t[2])
				w.line("VPMULLW Y%d, Y%d, Y%[2]d", t[1], t[2])
				w.line("VPAND Y15, Y%d, Y%[1]d", t[0])
				w.line("VPOR Y%d, Y%d, Y%d", t[0], t[2], acc)
			},
		}
	case "Q": // The low halves, and 2**32 times the sum of the mixed products.
		return &combiner{combine: func(w *writer, in, acc int, t []int) {
			w.line("VPSRLQ $32, Y%d, Y%d", in, t[0])
			w.line("VPSRLQ $32, Y%d, Y%d", acc, t[1])
			w.line("VPMULUDQ Y%d, Y%d, Y%[1]d", t[0], acc)
			w.line("VPMULUDQ Y%d, Y%d, Y%[1]d", t[1], in)
			w.line("VPADDQ Y%d, Y%d, Y%[1]d", t[0], t[1])
			w.line("VPSLLQ $32, Y%d, Y%[1]d", t[0])
			w.line("VPMULUDQ Y%d, Y%d, Y%[2]d", in, acc)
			w.line("VPADDQ Y%d, Y%d, Y%[2]d", t[0], acc)
		}}
	}
	return &combiner{memory: "VPMULL" + letter}
}

func extremeAVX2(op, elem string) *combiner {
	signed := strings.HasPrefix(elem, "I")
	if l := letter(elem); l != "Q" {
		return &combiner{memory: "VP" + strings.ToUpper(op) + map[bool]string{true: "S", false: "U"}[signed] + l}
	}
	c := &combiner{combine: func(w *writer, in, acc int, t []int) {
		x, y := in, acc
		if !signed {
			x, y = t[0], t[1]
			w.line("VPXOR Y15, Y%d, Y%d", in, x)
			w.line("VPXOR Y15, Y%d, Y%d", acc, y)
		}
		if op == "Min" {
			x, y = y, x
		}
		w.line("VPCMPGTQ Y%d, Y%d, Y%d", y, x, t[2])
		w.line("VPBLENDVB Y%d, Y%d, Y%d, Y%[3]d", t[2], in, acc)
	}}
	if !signed { // Y15 has the sign bits.
		c.constants = []string{allOnes, "VPSLLQ $63, Y15, Y15"}
	}
	return c
}

// logicalAVX2 has 1 of the element's size in Y15.
func logicalAVX2(op, letter string) *combiner {
	one := map[string]string{"B": "VPABSB Y15, Y15", "W": "VPSRLW $15, Y15, Y15", "D": "VPSRLD $31, Y15, Y15", "Q": "VPSRLQ $63, Y15, Y15"}
	return &combiner{
		constants: []string{allOnes, one[letter], zeroInY14},
		combine: func(w *writer, in, acc int, t []int) {
			if op == "Lor" {
				w.line("VPOR Y%d, Y%d, Y%d", in, acc, t[0])
				w.line("VPCMPEQ%s Y14, Y%d, Y%[2]d", letter, t[0])
				w.line("VPANDN Y15, Y%d, Y%d", t[0], acc)
				return
			}
			w.line("VPCMPEQ%s Y14, Y%d, Y%d", letter, in, t[0])
			w.line("VPCMPEQ%s Y14, Y%d, Y%d", letter, acc, t[1])
			if op == "Land" {
				w.line("VPOR Y%d, Y%d, Y%[1]d", t[0], t[1])
				w.line("VPANDN Y15, Y%d, Y%d", t[0], acc)
				return
			}
			w.line("VPXOR Y%d, Y%d, Y%[1]d", t[0], t[1])
			w.line("VPAND Y15, Y%d, Y%d", t[0], acc)
		},
	}
}

// halfAVX2 converts to float32 and rounds after each operation.
func halfAVX2(instruction string) *combiner {
	return &combiner{unit: func(w *writer, u unit) {
		for at := 0; at < 32; at += 16 {
			w.line("VCVTPH2PS %s, Y0", u.at(u.operands[0], at))
			for i, operand := range u.operands[1:] {
				if i > 0 {
					w.line("VCVTPS2PH $0, Y0, X0")
					w.line("VCVTPH2PS X0, Y0")
				}
				w.line("VCVTPH2PS %s, Y1", u.at(operand, at))
				w.line("%s Y1, Y0, Y0", instruction)
			}
			w.line("VCVTPS2PH $0, Y0, X0")
			u.store(w, "X0", at)
		}
	}}
}

// shortFloatAVX2 compares floating-point numbers of 16 bits as integers that have the sign of
// the number: both zeros are 0. Y15 has all bits but the sign, Y12 the infinity, which is made
// of ones by shifts to the right and to the left.
func shortFloatAVX2(op string, right, left int) *combiner {
	return &combiner{
		constants: []string{allOnes, fmt.Sprintf("VPSRLW $%d, Y15, Y12", right), fmt.Sprintf("VPSLLW $%d, Y12, Y12", left),
			"VPSRLW $1, Y15, Y15"},
		combine: func(w *writer, in, acc int, t []int) {
			w.line("VPAND Y15, Y%d, Y%d", in, t[0])
			w.line("VPAND Y15, Y%d, Y%d", acc, t[1])
			w.line("VPMAXSW Y%d, Y%d, Y%d", t[0], t[1], t[2])
			w.line("VPCMPGTW Y12, Y%d, Y%[1]d", t[2]) // One is not a number.
			w.line("VPSIGNW Y%d, Y%d, Y%[2]d", in, t[0])
			w.line("VPSIGNW Y%d, Y%d, Y%[2]d", acc, t[1])
			x, y := t[0], t[1]
			if op == "Min" {
				x, y = y, x
			}
			w.line("VPCMPGTW Y%d, Y%d, Y%d", y, x, t[0])
			w.line("VPANDN Y%d, Y%d, Y%[1]d", t[0], t[2])
			w.line("VPBLENDVB Y%d, Y%d, Y%d, Y%[3]d", t[0], in, acc)
		},
	}
}

// multiplyComplex128 writes acc = acc * in, rounded as Go's complex128 are.
func multiplyComplex128(w *writer, in, acc int, t []int) {
	w.line("VMOVDDUP Y%d, Y%d", acc, t[0])
	w.line("VPERMILPD $15, Y%d, Y%d", acc, t[1])
	w.line("VPERMILPD $5, Y%d, Y%d", in, t[2])
	w.line("VMULPD Y%d, Y%d, Y%[2]d", in, t[0])
	w.line("VMULPD Y%d, Y%d, Y%[2]d", t[2], t[1])
	w.line("VADDSUBPD Y%d, Y%d, Y%d", t[1], t[0], acc)
}

func complex128AVX2() *combiner { return &combiner{combine: multiplyComplex128} }

// complex64AVX2 multiplies in float64, as Go does.
func complex64AVX2() *combiner {
	return &combiner{unit: func(w *writer, u unit) {
		for at := 0; at < 32; at += 16 {
			w.line("VCVTPS2PD %s, Y0", u.at(u.operands[0], at))
			for i, operand := range u.operands[1:] {
				if i > 0 {
					w.line("VCVTPD2PSY Y0, X0")
					w.line("VCVTPS2PD X0, Y0")
				}
				w.line("VCVTPS2PD %s, Y1", u.at(operand, at))
				multiplyComplex128(w, 1, 0, []int{2, 3, 4})
			}
			w.line("VCVTPD2PSY Y0, X0")
			u.store(w, "X0", at)
		}
	}}
}

// What code on bfloat16 has in registers: 0x7fff, 1 and 0xffff0000 in each 32 bits.
var brainConstants = []string{allOnes, "VPSRLD $31, Y15, Y14", "VPSLLD $16, Y15, Y13", "VPSRLD $17, Y15, Y15"}

// splitBFloat16 writes the float32 of the even elements of a vector, and those of the odd ones.
func splitBFloat16(w *writer, from, even, odd int) {
	w.line("VPAND Y13, Y%d, Y%d", from, odd)
	w.line("VPSLLD $16, Y%d, Y%d", from, even)
}

// joinBFloat16 rounds such float32, to nearest even, and puts them together. A NaN that comes of
// bfloat16 is quiet, and has zeros in the bits that rounding looks at.
func joinBFloat16(w *writer, even, odd, to int, t []int) {
	for i, half := range []int{even, odd} {
		w.line("VPSRLD $16, Y%d, Y%d", half, t[i])
		w.line("VPADDD Y15, Y%d, Y%[1]d", half)
		w.line("VPAND Y14, Y%d, Y%[1]d", t[i])
		w.line("VPADDD Y%d, Y%d, Y%[2]d", t[i], half)
	}
	w.line("VPSRLD $16, Y%d, Y%[1]d", even)
	w.line("VPAND Y13, Y%d, Y%[1]d", odd)
	w.line("VPOR Y%d, Y%d, Y%d", even, odd, to)
}

// brainAVX2 computes in float32 and rounds what comes of all operands.
func brainAVX2(instruction string) *combiner {
	return &combiner{constants: brainConstants, unit: func(w *writer, u unit) {
		w.line("VMOVDQU %s, Y0", u.at(u.operands[0], 0))
		splitBFloat16(w, 0, 1, 2)
		for _, operand := range u.operands[1:] {
			w.line("VMOVDQU %s, Y0", u.at(operand, 0))
			splitBFloat16(w, 0, 3, 4)
			w.line("%s Y3, Y1, Y1", instruction)
			w.line("%s Y4, Y2, Y2", instruction)
		}
		joinBFloat16(w, 1, 2, 0, []int{3, 4})
		u.store(w, "Y0", 0)
	}}
}

var othersAMD64 = []function{
	{
		name: "streamBlocks(to, from unsafe.Pointer, n int)", frame: 24,
		comment: "streamBlocks copies n bytes, a multiple of 64, past the caches. to is aligned to 32.",
		write: func(w *writer) {
			loopAMD64(w, nil, 64, func() {
				w.line("VMOVDQU (SI), Y0")
				w.line("VMOVDQU 32(SI), Y1")
				w.line("VMOVNTDQ Y0, (DI)")
				w.line("VMOVNTDQ Y1, 32(DI)")
				w.line("ADDQ $64, SI")
				w.line("ADDQ $64, DI")
			})
		},
	},
	{
		name:    "streamFence()",
		comment: "streamFence orders what was written past the caches before the stores that follow.",
		write: func(w *writer) {
			w.line("SFENCE")
			w.line("RET")
		},
	},
	{
		name: "widenBFloat16(to, from unsafe.Pointer, n int)", frame: 24, comment: widenComment,
		write: func(w *writer) {
			loopAMD64(w, brainConstants, 32, func() {
				w.line("VMOVDQU (SI), Y0")
				splitBFloat16(w, 0, 1, 2)
				w.line("VMOVDQU Y1, (DI)")
				w.line("VMOVDQU Y2, 32(DI)")
				w.line("ADDQ $32, SI")
				w.line("ADDQ $64, DI")
			})
		},
	},
	{
		name: "narrowBFloat16(to, from unsafe.Pointer, n int)", frame: 24, comment: narrowComment,
		write: func(w *writer) {
			loopAMD64(w, brainConstants, 32, func() {
				w.line("VMOVDQU (SI), Y1")
				w.line("VMOVDQU 32(SI), Y2")
				joinBFloat16(w, 1, 2, 0, []int{3, 4})
				w.line("VMOVDQU Y0, (DI)")
				w.line("ADDQ $64, SI")
				w.line("ADDQ $32, DI")
			})
		},
	},
}

// loopAMD64 writes a function from one address to another one: a loop that counts n down by
// step, as long as something is left.
func loopAMD64(w *writer, constants []string, step int, body func()) {
	w.line("MOVQ to+0(FP), DI")
	w.line("MOVQ from+8(FP), SI")
	w.line("MOVQ n+16(FP), AX")
	for _, l := range constants {
		w.line("%s", l)
	}
	w.line("SUBQ $%d, AX", step)
	w.line("JLT  done")
	w.line("PCALIGN $32")
	w.label("loop")
	body()
	w.line("SUBQ $%d, AX", step)
	w.line("JGE  loop")
	w.label("done")
	w.line("VZEROUPPER")
	w.line("RET")
}
