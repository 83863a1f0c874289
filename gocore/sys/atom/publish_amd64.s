//go:build !interleave

#include "textflag.h"

// func Publish32(p *uint32, v uint32)
TEXT ·Publish32(SB), NOSPLIT, $0-12
	MOVQ	p+0(FP), AX
	MOVL	v+8(FP), CX
	MOVL	CX, (AX)
	LOCK
	ORL	$0, 0(SP)
	RET

// func Publish64(p *uint64, v uint64)
TEXT ·Publish64(SB), NOSPLIT, $0-16
	MOVQ	p+0(FP), AX
	MOVQ	v+8(FP), CX
	MOVQ	CX, (AX)
	LOCK
	ORL	$0, 0(SP)
	RET
