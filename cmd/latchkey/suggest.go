package main

import "slices"

// closest returns the name that the user probably meant by word, or "". It is the name with the
// fewest edits, if the edits are fewer than half of the letters of the longer word.
func closest(word string, names []string) (meant string) {
	least := -1
	for _, name := range names {
		edits := editDistance([]rune(word), []rune(name))
		if 2*edits < max(len(word), len(name)) && (least < 0 || edits < least) {
			least, meant = edits, name
		}
	}
	return meant
}

// editDistance returns how many edits turn a into b. An edit inserts, removes or replaces a letter,
// or swaps two neighbors.
func editDistance(a, b []rune) int {
	var last []int // the row before
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		beforeLast := last
		last, row = row, slices.Clone(row)
		row[0] = i + 1
		for j := range b {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], beforeLast[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
