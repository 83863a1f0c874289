package op

import "golang.org/x/sys/cpu"

// hasVectors reports whether the processor, and the system, have what the kernels use.
var hasVectors = cpu.X86.HasAVX2 && cpu.X86.HasF16C

// hasWideVectors reports whether there are vectors of 64 bytes. The first processors that had them ran more slowly while
// they used them; those that came later have VBMI2, too.
var hasWideVectors = hasVectors && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL &&
	cpu.X86.HasAVX512VBMI2
