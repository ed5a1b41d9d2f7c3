"""Tables: data frames of any library as columns of plain arrays, and the encoder that makes rows of numbers of them."""
