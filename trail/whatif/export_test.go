package whatif

// SentenceOf returns the sentence of a change.
func SentenceOf(c Change) string {
	c.setSentence()
	return c.Sentence
}
