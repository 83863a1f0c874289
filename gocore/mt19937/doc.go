// Package mt19937 is the 64-bit Mersenne twister of Matsumoto and Nishimura,
// MT19937-64, which C++ calls std::mt19937_64, and what libstdc++ draws from it:
// bounded integers and samples. NumPy has only the 32-bit twister. Programs that
// exchange test data with a C++ program need the same numbers.
//
// A State may lie in memory of the program that uses it (At), so that there is
// nothing to free.
//
// It may import fabric.
package mt19937
