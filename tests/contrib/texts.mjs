import { tensor, texts } from './tensors.mjs';

const tokens = (what, strings, { dims = [strings.length], separators = null, mark = 0, least = 1, pad = '#', ...attrs } = {}) => () => ({
  what, attrs: { mark, mincharnum: least, pad_value: pad, ...(separators ? { separators: texts(separators) } : {}), ...attrs }, inputs: [tensor('string', dims, strings)],
});

export const cases = {
  Tokenizer: [
    tokens('by blanks', ['Hello World', 'I love computer science !', ''], { separators: [' '] }), tokens('a matrix', ['a b', 'c', ' d', 'e f g'], { dims: [2, 2], separators: [' '] }), tokens('separators one after the other', ['a, b,c d'], { separators: [' ', ','] }), tokens('a separator takes from the next', ['xabcy'], { separators: ['ab', 'abc'] }),
    tokens('the longest match', ['xabcy'], { separators: ['ab|abc'] }), tokens('marks', ['a', 'b c', ''], { separators: [' '], mark: 1 }), tokens('marks of nothing', ['', '  '], { separators: [' '], mark: 1 }), tokens('nothing', ['', '  '], { separators: [' '] }), tokens('short tokens', ['a bb ccc é éé'], { separators: [' '], least: 2 }),
    tokens('characters', ['abé', '', '日本'], { separators: [''] }), tokens('characters, marks', ['abé', ''], { separators: [''], mark: 1 }), tokens('characters by an expression', ['ab\n', 'é'], { tokenexp: '.' }), tokens('expression', ['ab1 cd22 e', '7'], { tokenexp: '[a-z]+' }), tokens('expression, short tokens', ['a bb ccc d ee'], { tokenexp: '[a-z]+', least: 2, mark: 1 }),
    tokens('expression of nothing, too', ['ab1cd2', ''], { tokenexp: '[a-z]*' }), tokens('the longest of an expression', ['abab'], { tokenexp: 'a|ab' }), tokens('only the beginning', ['aab a'], { separators: ['^a'] }), tokens('separators of nothing', ['ab cd', 'é'], { separators: ['\\b'] }), tokens('an empty separator among others', ['bac'], { separators: ['a', ''] }),
    tokens('classes', ['x  y\tz', 'ä, ö; ü'], { separators: ['\\s+', '[,;]'] }), tokens('separators and an expression', ['Hello World'], { separators: [' '], tokenexp: '[a-z]+' }), tokens('an empty padding', ['a', 'b c'], { separators: [' '], pad: '' }), tokens('letters of any kind', ['Größe 12 µm'], { tokenexp: '\\pL+' }), tokens('short and longer matches', ['a1b22c'], { tokenexp: '[0-9]+', least: 2 }),
  ],
};
