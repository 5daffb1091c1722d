package latchkey

import "sync"

// inParallel calls f for each element, at most limit at the same time, and returns when all calls have
// returned.
func inParallel[T any](limit int, all []T, f func(T)) {
	places := make(chan struct{}, limit)
	var calls sync.WaitGroup
	for _, each := range all {
		places <- struct{}{}
		calls.Go(func() {
			defer func() { <-places }()
			f(each)
		})
	}
	calls.Wait()
}

// atOnce calls f for all elements at the same time, and returns their errors by index.
func atOnce[T any](all []T, f func(T) error) []error {
	errs := make([]error, len(all))
	inParallel(len(all), indexes(all), func(i int) { errs[i] = f(all[i]) })
	return errs
}

// indexes returns the indexes of all.
func indexes[T any](all []T) []int {
	places := make([]int, len(all))
	for i := range places {
		places[i] = i
	}
	return places
}
