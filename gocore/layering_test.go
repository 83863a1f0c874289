package gocore

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "gormapy/"

// lower names the packages of gocore that each one may import. The order is
// that of the layers: a package may only name ones above it in this list, so
// the list itself can't have a lower layer import a higher one.
var lower = []struct {
	name string
	may  string
}{
	{".", ""},
	{"errs", ""},
	{"settings", ""},
	{"log", "settings"},
	{"dtype", ""},
	{"sys", ""},
	{"sys/atom", "sys"},
	{"trace", "settings sys"},
	{"trace/chrome", "trace"},
	{"arena", "sys"},
	{"ibverbs", ""},
	{"fabric", ""},
	{"mt19937", "fabric"},
	{"op", "dtype"},
	{"job", "sys sys/atom"},
	{"fabric/self", "fabric"},
	{"fabric/shm", "fabric job sys sys/atom"},
	{"libfabric", ""},
	{"fabric/ofi", "fabric libfabric sys"},
	{"fabric/tcp", "fabric sys"},
	{"fabric/verbs", "fabric ibverbs sys"},
	{"fabric/registry", "fabric fabric/ofi fabric/tcp fabric/verbs settings"},
	{"boot/pmi", ""},
	{"boot", "boot/pmi job sys"},
	{"launch", "boot/pmi job sys trace trace/chrome"},
	{"cmd/mpiexec", "launch"},
	{"engine", "errs fabric fabric/self fabric/shm job log sys sys/atom trace"},
	{"p2p", "dtype engine errs fabric job sys trace"},
	{"coll", "dtype engine errs fabric job op p2p sys sys/atom"},
	{"rma", "arena coll dtype engine errs fabric job log op p2p sys sys/atom"},
	{"mpiio", "coll dtype errs p2p sys"},
	{"mpi", "arena boot coll dtype engine errs fabric fabric/registry job log mpiio op p2p rma settings sys sys/atom trace trace/chrome"},
	{"examples/ring", "mpi"},
	{"rdmaapi/backend", ""},
	{"rdmaapi/sockets", ""},
	{"rdmaapi/soft", "fabric sys rdmaapi/backend rdmaapi/sockets"},
	{"rdmaapi/verbs", "ibverbs rdmaapi/backend"},
	{"rdmaapi/transfer", "fabric rdmaapi/backend rdmaapi/sockets"},
	{"rdmaapi/ofi", "libfabric rdmaapi/backend"},
	{"rdmaapi", "fabric sys rdmaapi/backend rdmaapi/ofi rdmaapi/sockets rdmaapi/soft rdmaapi/transfer rdmaapi/verbs"},
}

// helpers are packages that only tests import. They may import any layer.
var helpers = []string{"fabric/fabrictest", "ibverbs/double", "ranktest", "simulate", "sys/atom/explore"}

// bindings are the packages that may use cgo beside pybind: they open a library
// at run time, and without cgo there is something to compile that says so.
var bindings = []string{"ibverbs", "libfabric"}

// thirdParty is all that gocore uses beyond the standard library.
var thirdParty = []string{"golang.org/x/sys"}

// source is what the test looks at in one file.
type source struct {
	path    string
	test    bool
	imports []string
	comment string
}

// sources returns the Go files of each package, by its folder below gocore.
func sources(t *testing.T) map[string][]source {
	t.Helper()
	found := map[string][]source{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		if entry.IsDir() || path.Ext(file) != ".go" {
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		s := source{path: file, test: strings.HasSuffix(file, "_test.go"), comment: docOf(tree)}
		for _, i := range tree.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, name)
		}
		dir := filepath.ToSlash(filepath.Dir(file))
		found[dir] = append(found[dir], s)
		return nil
	})
	require.NoError(t, err)
	return found
}

func docOf(f *ast.File) string { return strings.Join(strings.Fields(f.Doc.Text()), " ") }

func TestLowerLayersImportNoHigherOnes(t *testing.T) {
	allowed := map[string][]string{}
	for _, layer := range lower {
		may := strings.Fields(layer.may)
		for _, name := range may {
			assert.Contains(t, allowed, name, "%s may not import %s, which is not below it", layer.name, name)
		}
		allowed[layer.name] = may
	}
	for name, files := range sources(t) {
		if slices.Contains(helpers, name) {
			continue
		}
		may, known := allowed[name]
		if !assert.True(t, known, "package %s is in no layer: give it a place in the list of this test", name) {
			continue
		}
		for _, file := range files {
			if file.test {
				continue
			}
			for _, imported := range file.imports {
				checkImport(t, file.path, imported, may)
			}
		}
	}
}

func checkImport(t *testing.T, file, imported string, may []string) {
	t.Helper()
	if inner, own := strings.CutPrefix(imported, module); own {
		layer, core := strings.CutPrefix(inner, "gocore/")
		assert.True(t, core && slices.Contains(may, layer), "%s imports %s; its package may import %v", file, imported, may)
		return
	}
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		if !slices.Contains(bindings, filepath.ToSlash(filepath.Dir(file))) {
			assert.NotEqual(t, "C", imported, "%s uses cgo, which only %v and pybind do", file, bindings)
		}
		return // the standard library
	}
	assert.True(t, slices.ContainsFunc(thirdParty, func(m string) bool {
		return imported == m || strings.HasPrefix(imported, m+"/")
	}), "%s imports %s; the core uses nothing but %v and the standard library", file, imported, thirdParty)
}

func TestPackagesSayWhatTheyAreForAndMayImport(t *testing.T) {
	for name, files := range sources(t) {
		comments := 0
		for _, file := range files {
			if file.comment == "" || file.test {
				continue
			}
			comments++
			begins := strings.HasPrefix(file.comment, "Package ") || strings.HasPrefix(file.comment, "Command ")
			assert.True(t, begins, "%s: the package comment begins %.20q", file.path, file.comment)
			assert.Contains(t, file.comment, "may import", "%s does not say what the package may import", file.path)
		}
		assert.Equal(t, 1, comments, "package %s has %d package comments", name, comments)
	}
}

func TestListHasNoPackagesThatAreGone(t *testing.T) {
	found := sources(t)
	for _, layer := range lower {
		assert.Contains(t, found, layer.name)
	}
}
