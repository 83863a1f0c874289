package pmix

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gormapy/gocore/settings"
)

// Library is the setting that names the library.
var Library = settings.Add(settings.Setting{Name: "GORMAPY_PMIX_LIBRARY", Reader: settings.ByRanks,
	Meaning: "file of libpmix, for ranks that Open MPI's mpirun, prterun or srun --mpi=pmix starts; without it the one that the launcher itself uses, then Open MPI's, then the system's"})

const (
	soname = "libpmix.so.2"
	// mapsLimit bounds what is read of the parent's list of mappings.
	mapsLimit = 4 << 20
)

// candidate is a library that may be the one.
type candidate struct {
	path string
	why  string // it is tried, for people
}

// candidates returns where libpmix may be, the best first: where the user says, what the
// launcher on this host has loaded, beside Open MPI, where the dynamic linker finds it,
// and where Debian has it.
func candidates() []candidate {
	if Library.Given() {
		return []candidate{{Library.Value(), Library.Name}}
	}
	var all []candidate
	add := func(path, why string) {
		if !slices.ContainsFunc(all, func(c candidate) bool { return c.path == path }) {
			all = append(all, candidate{path, why})
		}
	}
	// The parent is prterun, prted or slurmstepd, unless a wrapper stands between. Its
	// list may be unreadable if it is root's.
	if maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", os.Getppid())); err == nil {
		for _, path := range mapped(maps) {
			add(path, "the launcher has loaded it")
		}
		maps.Close()
	}
	for _, prefix := range []string{"PMIX_PREFIX", "OPAL_PREFIX", "PRTE_PREFIX"} {
		for _, folder := range []string{"lib", "lib64", "lib/openmpi", "lib/*-linux-gnu"} {
			if dir := os.Getenv(prefix); dir != "" {
				for _, path := range glob(filepath.Join(escape(dir), folder, soname)) {
					add(path, prefix)
				}
			}
		}
	}
	add(soname, "the dynamic linker's search")
	for _, path := range glob("/usr/lib/*/pmix2/lib/" + soname) {
		add(path, "Debian's folder")
	}
	return all
}

func glob(pattern string) []string {
	paths, _ := filepath.Glob(pattern)
	return paths
}

// escape keeps characters of a folder's name from being a pattern.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// mapped returns the libpmix in a list of mappings (/proc/PID/maps).
func mapped(maps io.Reader) []string {
	var found []string
	lines := bufio.NewScanner(io.LimitReader(maps, mapsLimit))
	for lines.Scan() {
		// Five columns come before the path, which may have spaces.
		i := strings.IndexByte(lines.Text(), '/')
		if i < 0 {
			continue
		}
		path := lines.Text()[i:]
		if strings.HasPrefix(filepath.Base(path), "libpmix.so.") && !strings.HasSuffix(path, " (deleted)") && !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	return found
}
