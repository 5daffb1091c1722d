// Package async has what goroutines share: running in parallel, a mutex first come first served,
// signals, and what is due.
package async

import "sync"

// ForEach calls f for each element, at most limit at the same time, and returns when all calls have
// returned.
func ForEach[T any](limit int, all []T, f func(T)) {
	slots := make(chan struct{}, limit)
	var calls sync.WaitGroup
	for _, each := range all {
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			f(each)
		})
	}
	calls.Wait()
}

// Errors calls f for all elements at the same time, and returns their errors by index.
func Errors[T any](all []T, f func(T) error) []error {
	errs := make([]error, len(all))
	ForEach(len(all), Indexes(all), func(i int) { errs[i] = f(all[i]) })
	return errs
}

// Indexes returns the indexes of all.
func Indexes[T any](all []T) []int {
	indexes := make([]int, len(all))
	for i := range indexes {
		indexes[i] = i
	}
	return indexes
}
