//go:build cgo

package pmix

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layout compiles and runs a C program that prints sizes, offsets and constants.
func layout(t *testing.T, header, proc, value, info, bytes string, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler called cc")
	}
	dir := t.TempDir()
	source := fmt.Sprintf("#include <stddef.h>\n#include <stdio.h>\n%s\ntypedef %s P;\ntypedef %s V;\ntypedef %s I;\ntypedef %s B;\nint main(void)\n{\n", header, proc, value, info, bytes)
	for _, size := range []string{"P", "V", "I", "B"} {
		source += fmt.Sprintf("\tprintf(\"sizeof %[1]s %%zu\\n\", sizeof(%[1]s));\n", size)
	}
	for _, field := range []string{"P, rank", "V, type", "V, data", "V, data.bo.bytes", "V, data.bo.size", "I, flags", "I, value", "B, bytes", "B, size"} {
		source += fmt.Sprintf("\tprintf(\"%[1]s %%zu\\n\", offsetof(%[1]s));\n", field)
	}
	for _, constant := range []string{"PMIX_SUCCESS", "PMIX_ERR_NOMEM", "PMIX_ERR_NOT_FOUND", "PMIX_ERR_LOST_CONNECTION", "PMIX_BOOL", "PMIX_STRING", "PMIX_INT",
		"PMIX_BYTE_OBJECT", "PMIX_GLOBAL", "PMIX_RANK_WILDCARD", "PMIX_MAX_NSLEN", "PMIX_MAX_KEYLEN"} {
		source += fmt.Sprintf("\tprintf(\"%[1]s %%d\\n\", (int)%[1]s);\n", constant)
	}
	source += "\treturn 0;\n}\n"
	file, binary := filepath.Join(dir, "abi.c"), filepath.Join(dir, "abi")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	out, err := exec.Command(cc, append(flags, "-o", binary, file)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(binary).Output()
	require.NoError(t, err)
	return string(out)
}

// ours prints what glue.h declares.
func ours(t *testing.T) string {
	t.Helper()
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	return layout(t, `#include "glue.h"`, "struct gm_pmix_proc", "struct gm_pmix_value", "struct gm_pmix_info", "struct gm_pmix_bytes", "-I"+here)
}

// TestABI compares glue.h with the real headers.
func TestABI(t *testing.T) {
	folders, err := filepath.Glob("/usr/lib/*/pmix2/include")
	require.NoError(t, err)
	for _, dir := range append(folders, "/usr/include", "/usr/local/include") {
		if _, err := os.Stat(filepath.Join(dir, "pmix_common.h")); err == nil {
			theirs := layout(t, "#include <pmix_common.h>", "pmix_proc_t", "pmix_value_t", "pmix_info_t", "pmix_byte_object_t", "-I"+dir)
			require.Greater(t, strings.Count(theirs, "\n"), 20)
			assert.Equal(t, theirs, ours(t))
			return
		}
	}
	t.Skip("PMIx's headers are not installed (Debian: libpmix-dev)")
}

func TestSizes(t *testing.T) {
	text := ours(t)
	for _, line := range []string{"sizeof P 260", "sizeof V 32", "sizeof I 552", "sizeof B 16", "V, data 8", "I, flags 512", "I, value 520"} {
		assert.Contains(t, text, line+"\n")
	}
}

func TestErrorsNameWhatWasTried(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "libpmix.so.2")
	require.NoError(t, os.WriteFile(junk, []byte("junk"), 0o600))
	_, err := open([]candidate{{"/nonexistent/libpmix.so", "a reason"}, {junk, "another"}, {"libc.so.6", "a third"}})
	require.Error(t, err)
	for _, part := range []string{"set GORMAPY_PMIX_LIBRARY", "/nonexistent/libpmix.so (a reason): cannot open shared object file",
		junk + " (another): ", "libc.so.6 (a third): it lacks functions of PMIx"} {
		assert.Contains(t, err.Error(), part)
	}
}
