// Command packagecomments prints the package comments of gocore as Markdown, for the documentation site: a JSON object
// with the layers of the core, and for each package its comment and what it imports of gocore.
//
// It may import only the standard library.
package main

import (
	"encoding/json"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const core = "gormapy/gocore/"

// found is one package, as the JSON object has it.
type found struct {
	Comment string   `json:"comment"` // Markdown
	Imports []string `json:"imports"`
	tests   bool     // only tests import it
	text    string   // as it is written
}

// layer is a line of the table in the comment of package gocore.
type layer struct {
	Name     string   `json:"name"`
	Packages []string `json:"packages"`
}

func main() {
	log.SetFlags(0)
	folder := "gocore"
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	packages, err := read(folder)
	if err != nil {
		log.Fatal(err)
	}
	if packages["."] == nil {
		log.Fatalf("%s has no package comment with the layers", folder)
	}
	answer := map[string]any{"layers": layers(packages), "packages": packages}
	delete(packages, ".")
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		log.Fatal(err)
	}
}

// read returns the packages in a folder and below it, by their folder.
func read(root string) (map[string]*found, error) {
	packages := map[string]*found{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		if entry.IsDir() || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		name := filepath.ToSlash(inside)
		if packages[name] == nil {
			packages[name] = &found{Imports: []string{}}
		}
		return packages[name].add(tree)
	})
	return packages, err
}

func (p *found) add(tree *ast.File) error {
	for _, spec := range tree.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if inside, own := strings.CutPrefix(name, core); own && !slices.Contains(p.Imports, inside) {
			p.Imports = append(p.Imports, inside)
		}
	}
	slices.Sort(p.Imports)
	if tree.Doc == nil {
		return nil
	}
	p.text = tree.Doc.Text()
	p.tests = strings.Contains(strings.ToLower(strings.Join(strings.Fields(p.text), " ")), "only tests import it")
	var reader comment.Parser
	doc := reader.Parse(p.text)
	printer := comment.Printer{
		HeadingLevel: 3,
		HeadingID:    func(*comment.Heading) string { return "" },
		DocLinkURL:   func(*comment.DocLink) string { return "" },
	}
	p.Comment = string(printer.Markdown(doc))
	return nil
}

// layers reads the table, which has the highest layer first. A name that ends in /* stands for the packages in a folder
// that no line names. The last layer has the packages that only tests import.
func layers(packages map[string]*found) []layer {
	var list []layer
	named := map[string]bool{}
	for _, line := range strings.Split(packages["."].text, "\n") {
		if words := strings.Fields(line); strings.HasPrefix(line, "\t") && len(words) > 1 {
			list = append(list, layer{words[0], words[1:]})
			for _, word := range words[1:] {
				named[word] = true
			}
		}
	}
	var rest []string
	for name, p := range packages {
		if p.tests {
			rest = append(rest, name)
			named[name] = true
		}
	}
	slices.Sort(rest)
	for i, l := range list {
		var members []string
		for _, word := range l.Packages {
			prefix, pattern := strings.CutSuffix(word, "/*")
			if !pattern {
				members = append(members, word)
				continue
			}
			var in []string
			for name := range packages {
				if strings.HasPrefix(name, prefix+"/") && !named[name] {
					in = append(in, name)
				}
			}
			slices.Sort(in)
			members = append(members, in...)
		}
		list[i].Packages = members
	}
	return append(list, layer{"tests", rest})
}
