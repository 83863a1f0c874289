package dtype

import "strings"

// codes maps the codes of NumPy and of PEP 3118 to the types of a buffer with such
// elements.
var codes = map[string]string{
	"?": "C_BOOL", "b1": "C_BOOL",
	"b": "SIGNED_CHAR", "h": "SHORT", "i": "INT", "l": "LONG", "q": "LONG_LONG",
	"B": "UNSIGNED_CHAR", "H": "UNSIGNED_SHORT", "I": "UNSIGNED", "L": "UNSIGNED_LONG", "Q": "UNSIGNED_LONG_LONG",
	"e": "FLOAT16_T", "f": "FLOAT", "d": "DOUBLE", "g": "LONG_DOUBLE",
	"Ze": "COMPLEX4", "Zf": "C_FLOAT_COMPLEX", "Zd": "C_DOUBLE_COMPLEX", "Zg": "C_LONG_DOUBLE_COMPLEX",
	"E": "COMPLEX4", "F": "C_FLOAT_COMPLEX", "D": "C_DOUBLE_COMPLEX", "G": "C_LONG_DOUBLE_COMPLEX",
	"i1": "INT8_T", "i2": "INT16_T", "i4": "INT32_T", "i8": "INT64_T",
	"u1": "UINT8_T", "u2": "UINT16_T", "u4": "UINT32_T", "u8": "UINT64_T",
	"f2": "FLOAT16_T", "f4": "FLOAT", "f8": "DOUBLE", "f16": "LONG_DOUBLE",
	"c4": "COMPLEX4", "c8": "C_FLOAT_COMPLEX", "c16": "C_DOUBLE_COMPLEX", "c32": "C_LONG_DOUBLE_COMPLEX",
	"n": "COUNT", "N": "UNSIGNED_LONG", "p": "AINT", "P": "UNSIGNED_LONG",
	"c": "CHAR", "a": "CHAR", "S": "CHAR", "S1": "CHAR", "s": "CHAR", "1s": "CHAR",
	"U": "WCHAR", "U1": "WCHAR", "w": "WCHAR", "1w": "WCHAR",
	"u": "UINT16_T", "1u": "UINT16_T",
	"M": "INT64_T", "M8": "INT64_T", "m": "INT64_T", "m8": "INT64_T",
}

// FromCode returns the type of a type character or string ("d", "i4", "Zf"),
// nil if there is none. It takes no byte-order prefix.
func FromCode(code string) *Type { return byName[codes[code]] }

// integers has the codes of integers (true: signed) by size, for formats whose prefix
// gives characters another size than the machine's: "<l" has 4 bytes.
var integers = map[bool]map[int]string{
	true:  {1: "i1", 2: "i2", 4: "i", 8: "l"},
	false: {1: "u1", 2: "u2", 4: "I", 8: "L"},
}

// FromFormat returns the type of the elements of a buffer with that PEP 3118
// format and item size (0 if it is not known), nil if there is none. An empty
// format means bytes. Prefixes of the machine's own byte order are accepted;
// where one makes the characters differ in size from C's, the item size decides.
func FromFormat(format string, itemsize int) *Type {
	if format == "" {
		if itemsize > 1 {
			return nil
		}
		return ByName("BYTE")
	}
	code := strings.TrimLeft(format[:1], "@=<|") + format[1:]
	// The byte order of single bytes does not matter.
	native := strings.TrimLeft(code, ">!")
	foreign := native != code
	code = native
	t := FromCode(code)
	if t == nil {
		return nil
	}
	if itemsize > 0 && t.size != itemsize {
		if !strings.Contains("hilqHILQnN", code) {
			return nil
		}
		if t = FromCode(integers[strings.Contains("hilqn", code)][itemsize]); t == nil {
			return nil
		}
	}
	if foreign && t.size > 1 {
		return nil
	}
	return t
}

// TypeChar returns NumPy's type character for t ("d"), "" if it has none. A
// duplicate has that of its original.
func TypeChar(t *Type) string {
	if t == nil {
		return ""
	}
	return t.code
}

var typeStrings = map[string]string{
	"?": "b1", "b": "i1", "h": "i2", "i": "i4", "l": "i8", "q": "i8", "p": "i8",
	"B": "u1", "H": "u2", "I": "u4", "L": "u8", "Q": "u8",
	"e": "f2", "f": "f4", "d": "f8", "g": "f16",
	"E": "c4", "F": "c8", "D": "c16", "G": "c32",
	"c": "S1", "U": "U1",
}

// TypeStr returns NumPy's type string for t, without byte order ("f8"), "" if
// it has none.
func TypeStr(t *Type) string { return typeStrings[TypeChar(t)] }
