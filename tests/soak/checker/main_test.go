package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

func result(t *testing.T, histories ...string) porcupine.CheckResult {
	t.Helper()
	var all []porcupine.Operation
	for i, text := range histories {
		path := filepath.Join(t.TempDir(), "history")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "; ", "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := parse(path, i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	return porcupine.CheckOperationsTimeout(model.ToModel(), all, 0)
}

func TestChecker(t *testing.T) {
	for _, c := range []struct {
		name      string
		histories []string
		want      porcupine.CheckResult
	}{
		{"one after the other", []string{"call 1 10 0 add 5 0; return 1 20 0", "call 1 30 0 add 5 0; return 1 40 5"}, porcupine.Ok},
		{"a lost update", []string{"call 1 10 0 add 5 0; return 1 20 0", "call 1 30 0 add 5 0; return 1 40 0"}, porcupine.Illegal},
		{"at once, in either order", []string{"call 1 10 0 add 5 0; return 1 40 5", "call 1 20 0 add 5 0; return 1 30 0"}, porcupine.Ok},
		{"words are apart", []string{"call 1 10 0 add 5 0; return 1 20 0", "call 1 30 1 add 5 0; return 1 40 0"}, porcupine.Ok},
		{"no result: it took effect", []string{"call 1 10 0 add 5 0", "call 1 30 0 read 0 0; return 1 40 5"}, porcupine.Ok},
		{"no result: it did not", []string{"call 1 10 0 add 5 0", "call 1 30 0 read 0 0; return 1 40 0"}, porcupine.Ok},
		{"over: it may not later", []string{"call 1 10 0 add 5 0; over 20",
			"call 1 30 0 read 0 0; return 1 40 0; call 2 50 0 read 0 0; return 2 60 5"}, porcupine.Illegal},
		{"compare-and-swap", []string{"call 1 10 0 cas 0 7; return 1 20 0; call 2 30 0 cas 0 8; return 2 40 7; call 3 50 0 swap 9 0; return 3 60 7"}, porcupine.Ok},
		{"a compare-and-swap that should not have", []string{"call 1 10 0 cas 1 7; return 1 20 0; call 2 30 0 read 0 0; return 2 40 7"}, porcupine.Illegal},
	} {
		if got := result(t, c.histories...); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}
