package main

import "slices"

// closest is the name that was probably meant by a word, or "": the one that takes the fewest edits, if they are
// fewer than half of its letters.
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

// editDistance is how many letters are to be inserted, removed, replaced, or swapped with the next one, to make b
// of a.
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
