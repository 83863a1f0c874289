package gocore

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// update has TestArchitectureHasTheGraph write what it would compare.
var update = flag.Bool("update", false, "write the graph of packages into ARCHITECTURE.md")

const core = "gormapy/gocore/"

// bindings are the packages that may use cgo beside pybind: they open a library
// at run time, and without cgo there is something to compile that says so.
var bindings = []string{"boot/pmix", "ibverbs", "libfabric"}

// thirdParty is all that gocore uses beyond the standard library.
var thirdParty = []string{"golang.org/x/sys"}

// pkg is a package of gocore, by its folder.
type pkg struct {
	name     string
	comments []string        // package comments, by file
	imports  map[string]bool // of code that is no test: packages of gocore
	files    []source
}

// source is one file.
type source struct {
	path    string
	test    bool
	imports []string
}

// onlyForTests reports whether the package's comment says so.
func (p *pkg) onlyForTests() bool {
	return strings.Contains(strings.ToLower(p.comment()), "only tests import it")
}

func (p *pkg) comment() string { return strings.Join(p.comments, " ") }

// packages returns those of gocore.
func packages(t *testing.T) map[string]*pkg {
	t.Helper()
	found := map[string]*pkg{}
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
		dir := filepath.ToSlash(filepath.Dir(file))
		if found[dir] == nil {
			found[dir] = &pkg{name: dir, imports: map[string]bool{}}
		}
		return found[dir].add(file, tree)
	})
	require.NoError(t, err)
	return found
}

func (p *pkg) add(file string, tree *ast.File) error {
	s := source{path: file, test: strings.HasSuffix(file, "_test.go")}
	for _, i := range tree.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		s.imports = append(s.imports, name)
		if s.test {
			continue
		}
		if inner, own := strings.CutPrefix(name, core); own {
			p.imports[inner] = true
		}
	}
	if comment := strings.Join(strings.Fields(tree.Doc.Text()), " "); comment != "" && !s.test {
		p.comments = append(p.comments, comment)
	}
	p.files = append(p.files, s)
	return nil
}

var mayImport = regexp.MustCompile(`It may import (.+?)\.( |$)`)

// declared returns what a package's comment says that it may import; ok is false if it
// says nothing.
func declared(comment string) (names []string, ok bool) {
	m := mayImport.FindStringSubmatch(comment)
	if m == nil {
		return nil, false
	}
	if m[1] == "only the standard library" {
		return nil, true
	}
	names = regexp.MustCompile(`, and |, | and `).Split(m[1], -1)
	slices.Sort(names)
	return names, true
}

// sentence is what a package's comment has to say of imports.
func sentence(imports []string) string {
	switch n := len(imports); n {
	case 0:
		return "It may import only the standard library."
	case 1:
		return "It may import " + imports[0] + "."
	default:
		return "It may import " + strings.Join(imports[:n-1], ", ") + " and " + imports[n-1] + "."
	}
}

func TestPackageCommentsSayWhatIsImported(t *testing.T) {
	for name, p := range packages(t) {
		if !assert.Len(t, p.comments, 1, "package %s has not one package comment", name) {
			continue
		}
		begins := strings.HasPrefix(p.comment(), "Package ") || strings.HasPrefix(p.comment(), "Command ")
		assert.True(t, begins, "%s: the package comment begins %.20q", name, p.comment())
		if p.onlyForTests() {
			continue
		}
		want := slices.Sorted(maps.Keys(p.imports))
		got, ok := declared(p.comment())
		assert.True(t, ok && slices.Equal(got, want), "package %s: its comment should have the sentence %q", name, sentence(want))
	}
}

func TestNothingElseIsImported(t *testing.T) {
	all := packages(t)
	for _, p := range all {
		for _, file := range p.files {
			for _, imported := range file.imports {
				if !file.test {
					checkImport(t, all, p, file.path, imported)
				}
			}
		}
	}
}

func checkImport(t *testing.T, all map[string]*pkg, p *pkg, file, imported string) {
	t.Helper()
	if inner, own := strings.CutPrefix(imported, core); own {
		if !p.onlyForTests() && all[inner] != nil {
			assert.False(t, all[inner].onlyForTests(), "%s imports %s, which is for tests only", file, imported)
		}
		return
	}
	if imported == "C" {
		assert.True(t, slices.Contains(bindings, p.name) || p.onlyForTests(), "%s uses cgo, which only %v and pybind do", file, bindings)
		return
	}
	first, _, _ := strings.Cut(imported, "/")
	if p.onlyForTests() || !strings.Contains(first, ".") {
		return // the standard library, or what tests use
	}
	assert.True(t, slices.ContainsFunc(thirdParty, func(m string) bool {
		return imported == m || strings.HasPrefix(imported, m+"/")
	}), "%s imports %s; the core uses nothing but %v and the standard library", file, imported, thirdParty)
}

// layer is one line of the table in the package comment of gocore.
type layer struct {
	name     string
	packages []string
}

// layers reads that table, which has the highest layer first. A name that ends in /*
// stands for the packages in a folder that no line names.
func layers(t *testing.T, all map[string]*pkg) []layer {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var list []layer
	for _, group := range tree.Comments {
		for _, c := range group.List {
			line, in := strings.CutPrefix(c.Text, "//\t")
			words := strings.Fields(line)
			switch {
			case !in:
			case strings.HasPrefix(line, " "): // goes on
				last := &list[len(list)-1]
				last.packages = append(last.packages, words...)
			default:
				list = append(list, layer{words[0], words[1:]})
			}
		}
	}
	named := map[string]bool{}
	for _, l := range list {
		for _, name := range l.packages {
			named[name] = true
		}
	}
	for i, l := range list {
		var names []string
		for _, name := range l.packages {
			if !strings.HasSuffix(name, "/*") {
				names = append(names, name)
				continue
			}
			for _, found := range slices.Sorted(maps.Keys(all)) {
				if in, err := path.Match(name, found); err == nil && in && !named[found] && !all[found].onlyForTests() {
					names = append(names, found)
				}
			}
		}
		list[i].packages = names
	}
	return list
}

func TestLayers(t *testing.T) {
	all := packages(t)
	height := map[string]int{}
	list := layers(t, all)
	for i, l := range list {
		for _, name := range l.packages {
			assert.NotContains(t, height, name, "gocore/doc.go names %s twice", name)
			assert.Contains(t, all, name, "gocore/doc.go names a package that is not there")
			height[name] = len(list) - i
		}
	}
	for name, p := range all {
		if name == "." || p.onlyForTests() && !assert.NotContains(t, height, name) {
			continue
		}
		if p.onlyForTests() {
			continue
		}
		if !assert.Contains(t, height, name, "package %s is in no layer: name it in gocore/doc.go", name) {
			continue
		}
		for imported := range p.imports {
			assert.LessOrEqual(t, height[imported], height[name], "%s imports %s, which is in a higher layer", name, imported)
		}
	}
}

const (
	architecture = "../ARCHITECTURE.md"
	graphBegins  = "<!-- the graph is written by go test ./gocore -update -->\n"
	graphEnds    = "<!-- end of the graph -->\n"
)

// graph draws which package imports which, without what follows from the rest: an
// import of a package that another import brings along.
func graph(t *testing.T) string {
	t.Helper()
	all := packages(t)
	var reach func(from string, seen map[string]bool)
	reach = func(from string, seen map[string]bool) {
		for to := range all[from].imports {
			if !seen[to] {
				seen[to] = true
				reach(to, seen)
			}
		}
	}
	id := func(name string) string { return strings.ReplaceAll(name, "/", "_") }
	var b strings.Builder
	b.WriteString("```mermaid\ngraph TD\n")
	for _, l := range layers(t, all) {
		fmt.Fprintf(&b, "  subgraph %s\n", l.name)
		for _, name := range l.packages {
			fmt.Fprintf(&b, "    %s[%s]\n", id(name), name)
		}
		b.WriteString("  end\n")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p := all[name]
		if p.onlyForTests() {
			continue
		}
		indirect := map[string]bool{}
		for to := range p.imports {
			reach(to, indirect)
		}
		for _, to := range slices.Sorted(maps.Keys(p.imports)) {
			if !indirect[to] {
				fmt.Fprintf(&b, "  %s --> %s\n", id(name), id(to))
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}

func TestArchitectureHasTheGraph(t *testing.T) {
	text, err := os.ReadFile(architecture)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), graphBegins)
	require.True(t, ok, "ARCHITECTURE.md has no place for the graph")
	old, after, ok := strings.Cut(rest, graphEnds)
	require.True(t, ok, "the graph in ARCHITECTURE.md has no end")
	now := graph(t)
	if *update {
		require.NoError(t, os.WriteFile(architecture, []byte(before+graphBegins+now+graphEnds+after), 0o644))
		return
	}
	assert.Equal(t, now, old, "the graph in ARCHITECTURE.md is not that of the code: go test ./gocore -update")
}
