package device

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree makes a sysfs. cpus and distances have the kernel's text for each NUMA node, devices the NUMA
// node of each device.
func tree(t *testing.T, cpus, distances []string, devices map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write := func(text string, path ...string) {
		file := filepath.Join(append([]string{root}, path...)...)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o644))
	}
	for n := range cpus {
		write(cpus[n], "devices/system/node", "node"+strconv.Itoa(n), "cpulist")
		write(distances[n], "devices/system/node", "node"+strconv.Itoa(n), "distance")
	}
	for name, node := range devices {
		if node == "" { // a device in software
			write("1", "class/infiniband", name, "node_type")
			continue
		}
		write(node, "class/infiniband", name, "device/numa_node")
	}
	return root
}

func count(from, to int) (cpus []int) {
	for cpu := from; cpu <= to; cpu++ {
		cpus = append(cpus, cpu)
	}
	return cpus
}

func TestDevicesNearAProcess(t *testing.T) {
	two := tree(t, []string{"0-7,16-23", "8-15,24-31"}, []string{"10 21", "21 10"},
		map[string]string{"mlx5_0": "0", "mlx5_1": "0", "mlx5_2": "1", "mlx5_3": "1"})
	four := tree(t, []string{"0-1", "2-3", "4-5", "6-7"}, []string{"10 12 32 32", "12 10 32 32", "32 32 10 12", "32 32 12 10"},
		map[string]string{"mlx5_0": "1", "mlx5_1": "3"})
	mixed := tree(t, []string{"0-1", "2-3"}, []string{"10 21", "21 10"}, map[string]string{"mlx5_0": "1", "rxe0": "", "virt0": "-1"})
	bare := tree(t, nil, nil, map[string]string{"mlx5_0": "0", "mlx5_1": "1"})
	all := []string{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"}
	for _, c := range []struct {
		name    string
		root    string
		devices []string
		cpus    []int
		number  int
		near    []string
		turn    int
	}{
		{"not bound", two, all, count(0, 31), 5, all, 1},
		{"one processor", two, all, append(count(0, 7), count(16, 23)...), 3, all[:2], 0},
		{"the other one", two, all, append(count(8, 15), count(24, 31)...), 5, all[2:], 1},
		{"a core", two, all, []int{9}, 6, all[2:], 1},
		{"across processors", two, all, []int{7, 8}, 3, all, 3},
		{"no device here, by distance", four, all[:2], []int{0}, 0, all[:1], 0},
		{"nor there", four, all[:2], []int{5}, 0, all[1:2], 0},
		{"unknown is as near as the nearest", mixed, []string{"mlx5_0", "rxe0", "virt0"}, []int{0, 1}, 1, []string{"mlx5_0", "rxe0", "virt0"}, 1},
		{"nothing is known", bare, all[:2], []int{0}, 3, all[:2], 1},
		{"cores are not known", two, all, nil, 2, all, 2},
		{"one device", two, all[2:3], []int{0}, 7, all[2:3], 0},
	} {
		near, turn := nearest(c.root, c.devices, c.cpus, c.number)
		assert.Equal(t, c.near, near, c.name)
		assert.Equal(t, c.turn, turn, c.name)
	}
	for name, numbers := range map[string][]int{"one after the other": {0, 1, 2, 3}, "in turn": {0, 2, 4, 6}, "the others of them": {1, 3, 5, 7}} {
		taken := map[int]int{}
		for _, n := range numbers {
			_, turn := nearest(two, all, []int{0}, n)
			taken[turn]++
		}
		assert.Equal(t, map[int]int{0: 2, 1: 2}, taken, "ranks that are bound %s", name)
	}
	near, turn := nearest(two, nil, []int{0}, 3)
	assert.Empty(t, near)
	assert.Zero(t, turn)
}

func TestCPULists(t *testing.T) {
	for text, want := range map[string][]int{
		"0-3,8\n": {0, 1, 2, 3, 8}, "": nil, "5": {5}, "3-1": nil, "a-b,7": {7}, "0-99999999": nil,
	} {
		assert.Equal(t, want, cpuList(text), "%q", text)
	}
}
