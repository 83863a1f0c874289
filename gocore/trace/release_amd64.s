#include "textflag.h"

// func storeRelease(word *uint32, value uint32)
TEXT ·storeRelease(SB), NOSPLIT, $0-12
	MOVQ	word+0(FP), AX
	MOVL	value+8(FP), CX
	MOVL	CX, (AX)
	RET
