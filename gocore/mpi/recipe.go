package mpi

import "gormapy/gocore/errs"

// A recipe says how a datatype is made: by which constructor, then of which other one, by its handle, then the constructor's
// arguments. That of a struct has the handles at its end instead.
const (
	MakeDup           = iota
	MakeContiguous    // count
	MakeVector        // count, block length, stride
	MakeHvector       // the same
	MakeResized       // lower bound, extent
	MakeIndexed       // block lengths, as many displacements
	MakeHindexed      // the same
	MakeIndexedBlock  // block length, displacements
	MakeHindexedBlock // the same
	MakeSubarray      // sizes, as many subsizes, as many starts, order
	MakeStruct        // block lengths, as many displacements, as many handles
	makes
)

// shortest are the lengths of recipes; those from MakeIndexed on can be longer.
var shortest = [makes]int64{MakeDup: 2, MakeContiguous: 3, MakeVector: 5, MakeHvector: 5, MakeResized: 4, MakeIndexed: 2, MakeHindexed: 2,
	MakeIndexedBlock: 3, MakeHindexedBlock: 3, MakeSubarray: 3, MakeStruct: 1}

// MakeType makes a datatype by a recipe of n integers at an address, fills in its shape, and returns its handle, or a negative code.
func MakeType(recipe, n int64, s *TypeShape) (made int64) {
	defer containNegated(&made)
	r := longs(recipe, n)
	if n == 0 || r[0] < 0 || r[0] >= makes || n < shortest[r[0]] {
		return -int64(classError(errs.Intern, "the recipe of a datatype has %d integers", n))
	}
	if made = byRecipe(r, func(i int64) int64 { return recipe + 8*i }); made > 0 {
		if code := ShapeOfType(made, s); code != 0 {
			return -int64(code)
		}
	}
	return made
}

// byRecipe makes the datatype. at returns the address of an integer of the recipe.
func byRecipe(r []int64, at func(i int64) int64) int64 {
	switch n := int64(len(r)); r[0] {
	case MakeDup:
		return TypeDup(r[1])
	case MakeContiguous:
		return TypeContiguous(r[1], r[2])
	case MakeVector:
		return TypeVector(r[1], r[2], r[3], r[4])
	case MakeHvector:
		return TypeHvector(r[1], r[2], r[3], r[4])
	case MakeResized:
		return TypeResized(r[1], r[2], r[3])
	case MakeIndexed:
		n = (n - 2) / 2
		return TypeIndexed(r[1], n, at(2), at(2+n))
	case MakeHindexed:
		n = (n - 2) / 2
		return TypeHindexed(r[1], n, at(2), at(2+n))
	case MakeIndexedBlock:
		return TypeIndexedBlock(r[1], n-3, r[2], at(3))
	case MakeHindexedBlock:
		return TypeHindexedBlock(r[1], n-3, r[2], at(3))
	case MakeSubarray:
		n = (n - 3) / 3
		return TypeSubarray(r[1], n, at(2), at(2+n), at(2+2*n), r[2+3*n])
	default:
		n = (n - 1) / 3
		return TypeStruct(n, at(1), at(1+n), at(1+2*n))
	}
}
