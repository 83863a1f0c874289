//go:build !cgo

package double
