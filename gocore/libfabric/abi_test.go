//go:build cgo

package libfabric

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// structs are compared field by field: offset and size.
var structs = []string{
	"fi_tx_attr", "fi_rx_attr", "fi_ep_attr", "fi_domain_attr", "fi_fabric_attr", "fi_device_attr", "fi_link_attr", "fi_ops",
	"fid", "fid_nic", "fi_info", "fi_cq_attr", "fi_av_attr", "fi_ops_fabric", "fid_fabric", "fi_ops_domain", "fi_ops_mr",
	"fid_domain", "fid_mr", "fi_ops_av", "fid_av", "fi_cq_data_entry", "fi_cq_err_entry", "fi_ops_cq", "fid_cq", "fi_ops_cm",
	"fi_msg", "fi_ops_msg", "fi_rma_iov", "fi_msg_rma", "fi_ops_rma", "fi_ioc", "fi_rma_ioc", "fi_msg_atomic", "fi_ops_atomic",
	"fid_ep",
}

// grown are those that the library's versions append to and that we never make
// ourselves, or make with room: their whole size need not be the same.
var grown = map[string]bool{
	"fi_domain_attr": true, "fi_ops": true, "fi_ops_fabric": true, "fi_ops_domain": true, "fi_ops_mr": true, "fi_ops_av": true,
	"fi_cq_err_entry": true, "fi_ops_cm": true, "fi_ops_msg": true, "fi_ops_rma": true, "fi_ops_atomic": true, "fi_info": true,
	"fi_ep_attr": true, "fi_tx_attr": true, "fi_rx_attr": true, "fi_fabric_attr": true, "fi_cq_attr": true, "fi_av_attr": true,
}

// include finds the folder of the real headers.
func include(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/usr/include", "/usr/local/include", "/opt/amazon/efa/include"} {
		if _, err := os.Stat(filepath.Join(dir, "rdma/fi_endpoint.h")); err == nil {
			return dir
		}
	}
	t.Skip("libfabric's headers are not installed (Debian: libfabric-dev)")
	return ""
}

// compile compiles and runs a C program.
func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler called cc")
	}
	dir := t.TempDir()
	file, binary := filepath.Join(dir, "abi.c"), filepath.Join(dir, "abi")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	out, err := exec.Command(cc, append(flags, "-D_GNU_SOURCE", "-o", binary, file)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(binary).Output()
	require.NoError(t, err)
	return string(out)
}

// TestABI prints offsets and sizes of all fields and the values of all constants
// in abi.h, as they are there and as they are in the real headers.
func TestABI(t *testing.T) {
	real := include(t)
	text, err := os.ReadFile("abi.h")
	require.NoError(t, err)
	var body strings.Builder
	for _, name := range structs {
		fields := regexp.MustCompile(`(?s)\nstruct ` + name + ` \{\n(.*?)\n\};`).FindSubmatch(text)
		require.NotNil(t, fields, "struct %s is not in abi.h", name)
		flat := strings.Join(strings.Fields(string(fields[1])), " ")
		for _, f := range strings.Split(strings.TrimSuffix(flat, ";"), ";") {
			field := regexp.MustCompile(`\(\*(\w+)\)`).FindStringSubmatch(f)
			if field == nil {
				field = regexp.MustCompile(`(\w+)$`).FindStringSubmatch(f)
			}
			require.NotNil(t, field, "a field of struct %s: %q", name, f)
			fmt.Fprintf(&body, "\tprintf(\"%[1]s.%[2]s %%zu %%zu\\n\", offsetof(struct %[1]s, %[2]s), sizeof ((struct %[1]s *)0)->%[2]s);\n", name, field[1])
		}
		if !grown[name] {
			fmt.Fprintf(&body, "\tprintf(\"sizeof %[1]s %%zu\\n\", sizeof(struct %[1]s));\n", name)
		}
	}
	constants := regexp.MustCompile(`(?m)^#define (FI_\w+)|\b(FI_[A-Z0-9_]+) =|[{,] (FI_[A-Z0-9_]+) =`).FindAllSubmatch(text, -1)
	require.Greater(t, len(constants), 40)
	for _, c := range constants {
		name := string(c[1]) + string(c[2]) + string(c[3])
		fmt.Fprintf(&body, "\tprintf(\"%[1]s %%llx\\n\", (unsigned long long)%[1]s);\n", name)
	}
	program := func(headers string) string {
		return "#include <stdio.h>\n#include <stddef.h>\n" + headers + "int main(void)\n{\n" + body.String() + "\treturn 0;\n}\n"
	}
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	ours := compile(t, program("#include \"abi.h\"\n"), "-I"+here)
	theirs := compile(t, program("#include <rdma/fabric.h>\n#include <rdma/fi_domain.h>\n#include <rdma/fi_endpoint.h>\n"+
		"#include <rdma/fi_cm.h>\n#include <rdma/fi_rma.h>\n#include <rdma/fi_atomic.h>\n#include <rdma/fi_eq.h>\n#include <rdma/fi_errno.h>\n"), "-I"+real)
	require.Greater(t, len(strings.Split(ours, "\n")), 250)
	require.Equal(t, strings.Split(theirs, "\n"), strings.Split(ours, "\n"))
}
