package kernelgen

import "fmt"

// wideCombiner is how kernels with registers of 64 bytes combine two vectors. What is left of 32 bytes is combined by
// the same instructions on registers of 32.
type wideCombiner struct {
	constants []string
	// memory is an instruction that takes the operand from memory, if one does it all.
	memory string
	// unit writes a whole block instead, from loads to stores.
	unit func(w *writer, v vector, u unit)
}

// vector is a length of registers of vectors: that of Y or Z.
type vector struct {
	name string
	size int
}

var (
	vectorY = vector{"Y", 32}
	vectorZ = vector{"Z", 64}
)

func (v vector) reg(n int) string { return fmt.Sprint(v.name, n) }

// writeAVX512 writes a loop over 128 bytes, and what is left of 64 and of 32, as writeAMD64 does of 64 and 32.
func writeAVX512(w *writer, c *wideCombiner, operands int, stream bool) {
	reversed := addressesAMD64(w, operands)
	for _, l := range c.constants {
		w.line("%s", l)
	}
	w.line("NEGQ AX")
	w.line("ADDQ $128, AX")
	w.line("JGT  half")
	w.line("PCALIGN $32")
	w.label("loop")
	c.block(w, vectorZ, unit{-128, reversed, stream}, 0)
	c.block(w, vectorZ, unit{-64, reversed, stream}, 1)
	w.line("ADDQ $128, AX")
	w.line("JLE  loop")
	w.label("half")
	w.line("CMPQ AX, $64")
	w.line("JGT  rest")
	c.block(w, vectorZ, unit{-128, reversed, stream}, 0)
	w.line("ADDQ $64, AX")
	w.label("rest")
	w.line("CMPQ AX, $128")
	w.line("JGE  done")
	c.block(w, vectorY, unit{-128, reversed, stream}, 0)
	w.label("done")
	w.line("VZEROUPPER")
	w.line("RET")
}

// block writes the code for one vector; which chooses the registers.
func (c *wideCombiner) block(w *writer, v vector, u unit, which int) {
	if c.unit != nil {
		c.unit(w, v, u)
		return
	}
	acc := v.reg(which)
	w.line("VMOVDQU64 %s, %s", u.at(u.operands[0], 0), acc)
	for _, operand := range u.operands[1:] {
		w.line("%s %s, %s, %[3]s", c.memory, u.at(operand, 0), acc)
	}
	u.store(w, acc, 0)
}

// avx512 returns the combiner of an operation, nil if kernels with registers of 64 bytes are no faster. That was measured
// with operands in the second level of the cache: loads and stores take the time of those of a single instruction, and
// conversions that of float16 and complex64.
func avx512(op, elem string) *wideCombiner {
	switch {
	case op == "Prod" && elem == "Int64":
		return &wideCombiner{memory: "VPMULLQ"}
	case elem == "BFloat16" && (op == "Sum" || op == "Prod"):
		return brainAVX512(map[string]string{"Sum": "VADDPS", "Prod": "VMULPS"}[op])
	}
	return nil
}

// brainAVX512 is brainAVX2.
func brainAVX512(instruction string) *wideCombiner {
	constants := []string{"VPTERNLOGD $255, Z15, Z15, Z15", "VPSRLD $31, Z15, Z14", "VPSLLD $16, Z15, Z13", "VPSRLD $17, Z15, Z15"}
	return &wideCombiner{constants: constants, unit: func(w *writer, v vector, u unit) {
		split := func(operand string, even, odd int) {
			w.line("VMOVDQU64 %s, %s", u.at(operand, 0), v.reg(0))
			w.line("VPANDD %s, %s, %s", v.reg(13), v.reg(0), v.reg(odd))
			w.line("VPSLLD $16, %s, %s", v.reg(0), v.reg(even))
		}
		split(u.operands[0], 1, 2)
		for _, operand := range u.operands[1:] {
			split(operand, 3, 4)
			w.line("%s %s, %s, %[3]s", instruction, v.reg(3), v.reg(1))
			w.line("%s %s, %s, %[3]s", instruction, v.reg(4), v.reg(2))
		}
		for i, half := range []int{1, 2} {
			w.line("VPSRLD $16, %s, %s", v.reg(half), v.reg(3+i))
			w.line("VPADDD %s, %s, %[2]s", v.reg(15), v.reg(half))
			w.line("VPANDD %s, %s, %[2]s", v.reg(14), v.reg(3+i))
			w.line("VPADDD %s, %s, %[2]s", v.reg(3+i), v.reg(half))
		}
		w.line("VPSRLD $16, %s, %[1]s", v.reg(1))
		w.line("VPTERNLOGD $0xf8, %s, %s, %s", v.reg(13), v.reg(2), v.reg(1)) // even | odd & Z13
		u.store(w, v.reg(1), 0)
	}}
}
