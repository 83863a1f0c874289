package core

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unexported are the numbers of the headers that Go keeps to itself, so that pybind/shim/agree.go can't compare them.
var unexported = map[string]struct{ folder, name string }{
	"GM_OPEN_FENCE":    {"rma", "openFence"},
	"GM_OPEN_LOCK_ALL": {"rma", "openLockAll"},
	"TRACE_RECORDS_AT": {"trace", "recordsAt"},
}

// onlyC are those that Go has no number for, and why.
var onlyC = map[string]string{
	"GM_DONE":        "exports.go uses it itself",
	"TRACE_NO_PEER":  "Go leaves the peer of calls to C; python/gormapy/trace reads it",
	"TRACE_FINALIZE": "the names of calls are Python's",
}

// layoutless are the structures that exports.go converts field by field.
var layoutless = []string{"gm_side"}

// shim returns a file of pybind/shim without C's comments.
func shim(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "shim", name))
	require.NoError(t, err)
	return regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(text), "")
}

// enumerators returns the numbers that a header gives names to. Values that are no literal are left out.
func enumerators(t *testing.T, header string) (names []string, values map[string]int64) {
	values = map[string]int64{}
	for _, enum := range regexp.MustCompile(`enum \{([^}]*)\}`).FindAllStringSubmatch(header, -1) {
		next, known := int64(0), true
		for item := range strings.SplitSeq(enum[1], ",") {
			name, text, given := strings.Cut(strings.TrimSpace(item), "=")
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			if given {
				v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, text)
				if known = err == nil; known {
					next, _ = constant.Int64Val(v.Value)
				}
			}
			names = append(names, name)
			if known {
				values[name] = next
			}
			next++
		}
	}
	require.NotEmpty(t, names)
	return names, values
}

func TestEveryNumberOfTheHeadersIsCompared(t *testing.T) {
	agree := shim(t, "agree.go")
	for _, file := range []string{"gormapy.h", "trace.h"} {
		names, values := enumerators(t, shim(t, file))
		for _, name := range names {
			goName, inner := unexported[name]
			switch {
			case onlyC[name] != "":
			case inner:
				assert.Equal(t, unexportedValue(t, goName.folder, goName.name), values[name], "%s is not gocore/%s.%s", name, goName.folder, goName.name)
			default:
				assert.True(t, strings.Contains(agree, "same[C."+name+"-"), "%s: agree.go does not compare it", name)
			}
		}
	}
}

func TestEveryFieldOfTheHeadersIsCompared(t *testing.T) {
	agree := shim(t, "agree.go")
	field := regexp.MustCompile(`\*?(\w+)(\[\w*\])?\s*[,;]`)
	for _, file := range []string{"gormapy.h", "trace.h"} {
		structs := regexp.MustCompile(`(?s)typedef struct \{(.*?)\} (\w+);`).FindAllStringSubmatch(shim(t, file), -1)
		require.NotEmpty(t, structs)
		for _, s := range structs {
			if slices.Contains(layoutless, s[2]) {
				continue
			}
			assert.True(t, strings.Contains(agree, "Sizeof(C."+s[2]+"{})-"), "%s: agree.go does not compare its size", s[2])
			fields := field.FindAllStringSubmatch(s[1], -1)
			require.NotEmpty(t, fields)
			for _, f := range fields {
				if strings.HasPrefix(f[1], "pad") || f[2] == "[]" {
					continue
				}
				for _, what := range []string{"Offsetof", "Sizeof"} {
					compared := strings.Contains(agree, what+"(C."+s[2]+"{}."+f[1]+")-")
					assert.True(t, compared, "%s.%s: agree.go does not compare its %s", s[2], f[1], what)
				}
			}
		}
	}
}

// unexportedValue returns the value of an unexported constant of a package of gocore.
func unexportedValue(t *testing.T, folder, name string) int64 {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "gocore", folder, "*.go"))
	require.NoError(t, err)
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	// Nothing is imported, so most of the package does not type-check. Constants do.
	config := types.Config{Error: func(error) {}, FakeImportC: true, IgnoreFuncBodies: true}
	pkg, _ := config.Check(folder, set, files, nil)
	c, ok := pkg.Scope().Lookup(name).(*types.Const)
	require.True(t, ok, "gocore/%s has no constant %s: where it is exported now, let agree.go compare it", folder, name)
	v, err := strconv.ParseInt(c.Val().ExactString(), 10, 64)
	require.NoError(t, err)
	return v
}
