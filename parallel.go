package latchkey

import "sync"

// inParallel calls f for each element, at most limit at the same time, and returns when all calls have
// returned.
func inParallel[T any](limit int, all []T, f func(T)) {
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

// parallelErrors calls f for all elements at the same time, and returns their errors by index.
func parallelErrors[T any](all []T, f func(T) error) []error {
	errs := make([]error, len(all))
	inParallel(len(all), indexesOf(all), func(i int) { errs[i] = f(all[i]) })
	return errs
}

// indexesOf returns the indexes of all.
func indexesOf[T any](all []T) []int {
	indexes := make([]int, len(all))
	for i := range indexes {
		indexes[i] = i
	}
	return indexes
}
