package op

import "golang.org/x/sys/cpu"

// hasVectors reports whether the processor, and the system, have what the kernels use.
var hasVectors = cpu.X86.HasAVX2 && cpu.X86.HasF16C
