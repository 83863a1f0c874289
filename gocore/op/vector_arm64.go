package op

// hasVectors is true: every processor that Go supports has NEON.
const hasVectors = true

const hasWideVectors = false
