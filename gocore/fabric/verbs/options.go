package verbs

import (
	"fmt"
	"strconv"
)

// Options choose the device, in the words of the settings GORMAPY_IB_DEV, PORT
// and GID. What is empty New chooses.
type Options struct {
	Device string // name, such as mlx5_0
	Port   string // number, from 1
	GID    string // index in the port's table of addresses, from 0
}

// number is an option that is one, -1 if it is not given.
func number(name, value string, least int) (int, error) {
	if value == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > 65535 {
		return 0, fmt.Errorf("%s=%q is not a number from %d", name, value, least)
	}
	return n, nil
}
