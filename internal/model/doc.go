// Package model has the models of the scripts: it consists of tests. Each primitive has a reference
// of the state of its objects and of what its clients believe. Random sequences mix what clients,
// the wire, time and damage do to them. The calls are those that the library builds. They run on a
// real server and on the embedded one. The clock of the server stands still until a step moves it,
// so that nothing depends on the machine.
//
// LATCHKEY_TEST_MODEL_TIME is how long all models run together (30s, or 3s with -short), and
// LATCHKEY_TEST_MODEL_SEED is the first seed. A failure names its seed. It prints the shortest
// sequence that still fails, and a line for LATCHKEY_TEST_MODEL_REPLAY that runs this sequence
// alone. Sequences that have found a defect are in testdata and run every time.
//
// A model is a type with actions, which are drawn by weight, and a check that runs after each
// action. Each model has its own file. party_test.go has what all locks share, java_test.go the
// scripts of Redisson, and world_test.go the wire.
package model
