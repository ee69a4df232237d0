"""Small templates for make_template_goldens.py: one behaviour of the language each."""

VARIABLES = {
    "s": "Hello, World",
    "u": "naïve 日本語 🙂 ß",
    "e": "",
    "q": "it's \"q\"",
    "ws": " \t\n x y \u00a0\u2003",
    "n": 7,
    "neg": -7,
    "big": 9007199254740993,
    "f": 2.5,
    "g": 1e16,
    "h": 1.0,
    "tiny": 1.5e-7,
    "t": True,
    "no": False,
    "nil": None,
    "l": [3, 1, 2],
    "words": ["b", "A", "c", "a"],
    "mixed": [1, "two", None, True, 2.5, [1], {"k": "v"}],
    "d": {"b": 1, "a": [1, 2], "items": "shadowed", "c d": None, "B": 2},
    "users": [
        {"name": "Ann", "age": 31, "admin": True, "addr": {"city": "Rome"}},
        {"name": "bob", "age": 25, "admin": False, "addr": {"city": "Oslo"}},
        {"name": "Cy", "age": 31, "addr": {}},
    ],
    "empty_list": [],
    "empty_dict": {},
}

_PRINT = """
1 | 1.0 | 0.1 | 1e15 | 1e16 | 1.5e-5 | 0.0001 | 123456789.123456789 | 1e100 | 5e-324 | -0.0 | 100.0 | 1_000 | 0x1F | 0b101 | 0o17 | 1e3 | 2.50
true | false | none | True | False | None | [] | {} | () | (1,) | (1, 2) | [1, 'a', none, true, 1.5] | {'a': 1, 2: 'b', none: true}
'a' 'b' | "it's" | 'say "hi"' | ["it's"] | ['say "hi"'] | ['both \\' and "'] | ['tab\\tnl\\ncr\\r'] | ['\\x00\\x1f\\x7f\\xa0'] | ['é日🙂'] | ['\\u200b']
'\\u00e9\\x41\\101\\n' | '\\q' | 'a\\\\b' | '\\'' | "\\"" | ['\\\\'] | '\\U0001F600' | 'line\\
joined'
1 + 2 * 3 | (1 + 2) * 3 | 2 ** 3 ** 2 | -2 ** 2 | 2 ** -1 | 7 // 2 | -7 // 2 | 7 % 3 | -7 % 3 | 7 % -3 | 7 / 2 | 6 / 2 | 7.5 // 2 | -7.5 % 2 | 7.5 % -2 | 1 - -1 | - 3 | +3 | - -3
1 + 1.5 | 1 + true | true + true | true * 3 | 'ab' * 3 | 3 * 'ab' | [1, 2] * 2 | 'a' * 0 | 'a' * -1 | [1] + [2] | (1,) + (2,) | 'a' + 'b' | 2 ** 62 | 2 ** 0.5 | 10 ** 15 | 0 ** 0
'a' ~ 1 ~ none ~ true ~ 1.5 | 1 ~ 2 + 3 | 1 + 2 ~ 3 | 'x' ~ undefined_name ~ 'y' | [1] ~ 'a' | 1 ~ -1
1 < 2 | 1 < 2 < 3 | 3 > 2 > 2 | 1 == 1.0 | 1 == true | '1' == 1 | none == false | [1] == [1] | (1,) == [1] | {'a': 1} == {'a': 1.0} | 'a' < 'b' | 'Z' < 'a' | [1, 2] < [1, 3] | 1 != 2 | 1 <= 1 | 2 >= 3 | 1 < 2 == true | 'é' > 'z'
1 in [1, 2] | 3 not in [1, 2] | 'a' in 'abc' | '' in 'abc' | 'a' in {'a': 1} | 1 in {'a': 1} | none in [none] | true in [1] | 1 in (1, 2) | not 1 in [2] | 'b' not in 'abc' | 'x' in undefined_name | 2 in range(3)
true and false | true or false | not true | not false or true | 1 and 2 | 0 or 'x' | '' or none | [] and 1 | not [] | not none | 1 and 0 or 3 | not 1 == 2 | (true or false) and false
'y' if true else 'n' | 'y' if false else 'n' | 'y' if false | 'a' if false else 'b' if false else 'c' | ('a' if true else 'b') ~ 'c' | 1 if n > 5 else 2 | [1 if t else 2, 3]
s[0] | s[-1] | s[100] | s[1:4] | s[:3] | s[-3:] | s[::2] | s[::-1] | s[5:2] | s[:-1] | s[-100:3] | s[3:100] | s[::-2] | s[4:1:-1] | u[2] | u[6:9] | u[-3] | u[::-1] | u[:20] | e[0] | e[:3]
l[0] | l[-1] | l[5] | l[1:] | l[::-1] | l[:2] | l[5:] | (1, 2, 3)[1:] | (1, 2, 3)[0] | d['b'] | d['zz'] | d.b | d.zz | d['c d'] | d['a'][1] | d.a[0] | d.a.1 | users[0].name | users[0]['addr'].city | users[2].addr.city | l['x'] | s['x'] | none.x | n.x | range(5)[1] | range(5)[1:3] | range(10)[::3]
d.items | d['items'] | d.items() | d.keys() | d.values() | d.get('b') | d.get('zz') | d.get('zz', 5) | d.get('c d', 5) | d.items() | list | users[0].items() | list | d.keys() | list | d.copy() == d | {'x': 1}.get('x')
""".strip("\n").split("\n")

_EXPRESSIONS = [e for line in "\n".join(_PRINT).replace("|\n", "").split("\n") for e in line.split(" | ")]

_FILTERS = """
s|upper;s|lower;u|upper;u|lower;u|capitalize;s|capitalize;'hello wORLD-foo (bar'|title;'ǆ ß ﬁ'|upper;'ΣΑΣ ΟΔΟΣ'|lower;'İ'|lower;'ŉ'|upper;e|upper;nil|upper;n|string;nil|string;l|string;undefined_name|string;undefined_name|upper
ws|trim;ws|trim|length;'xxhixx'|trim('x');'abcba'|trim('ab');s|trim(none);n|trim;' a '|trim ~ '|';undefined_name|trim
s|length;u|length;l|length;d|length;e|length;undefined_name|length;n|length;nil|length;l|count;range(4)|length;d.items()|length;(l|map('string'))|length
s|replace('l','L');s|replace('l','L',1);s|replace('','-');s|replace('zz','');s|replace('Hello','');u|replace('日本','x');n|replace('7','8');s|replace('o', 0);'aaa'|replace('aa','b');s|replace('l','L',count=2);'ab'|replace('', '-', 2)
l|join;l|join(', ');words|join('-');mixed|join(',');users|join(', ', attribute='name');users|map(attribute='name')|join('/');e|join(',');s|join('.');d|join(',');undefined_name|join(',');[none, 1.0]|join('|');l|join(1);(1,2)|join(',')
nil|default('x');undefined_name|default('x');undefined_name|default;e|default('x');e|default('x', true);0|default('x', boolean=true);nil|default('x', true);d.zz|default(5);undefined_name|d('y');users[2].admin|default(false)
l|first;l|last;e|first;s|first;s|last;empty_list|first;empty_list|last;d|first;d|last;words|first|upper;undefined_name|first;range(3)|last
l|list;s|list;d|list;d.items()|list;range(3)|list;u|list|length;undefined_name|list;(1,2)|list;l|reverse|list;s|reverse;u|reverse;d|reverse|list;words|reverse|join
l|sort;l|sort(reverse=true);words|sort;words|sort(case_sensitive=true);words|sort(true);users|sort(attribute='age')|map(attribute='name')|join(',');users|sort(attribute='age,name')|map(attribute='name')|join(',');users|sort(attribute='age', reverse=true)|map(attribute='name')|join(',');users|sort(attribute='name')|map(attribute='name')|list;d|list|sort;mixed|sort;undefined_name|sort
d|dictsort;d|dictsort(true);{'b':2,'a':3}|dictsort(by='value');{'b':2,'a':3}|dictsort(false,'value');{'b':2,'a':3}|dictsort(reverse=true);l|dictsort
l|min;l|max;words|min;words|max;words|max(case_sensitive=true);empty_list|min;users|max(attribute='age');s|min;undefined_name|max
words|unique|list;[1,1.0,true,2]|unique|list;users|unique(attribute='age')|map(attribute='name')|list;words|unique(case_sensitive=true)|list;['a','A','b']|unique|join
users|map(attribute='addr.city')|list;users|map(attribute='admin', default='?')|list;words|map('upper')|join;l|map('string')|list;words|map('replace','a','z')|list;l|map(attribute='x')|list;users|map('items')|list|length;undefined_name|map('upper')|list;words|map('nope')|list
users|selectattr('admin')|map(attribute='name')|list;users|selectattr('age','equalto',31)|map(attribute='name')|list;users|rejectattr('admin')|map(attribute='name')|list;users|selectattr('admin','defined')|list|length;users|rejectattr('age','gt',30)|map(attribute='name')|list;users|selectattr('addr.city','eq','Rome')|list|length;users|selectattr('name','in',['bob'])|list|length;users|selectattr('x')|list
l|select|list;[0,1,'',2]|select|list;l|select('odd')|list;l|reject('odd')|list;l|select('gt',1)|list;mixed|select('string')|list;mixed|reject('none')|list|length;l|select('divisibleby',3)|list;l|reject('in',[1])|list;l|select('nope')|list
n|tojson;s|tojson;u|tojson;q|tojson;nil|tojson;t|tojson;f|tojson;g|tojson;tiny|tojson;mixed|tojson;d|tojson;empty_list|tojson;empty_dict|tojson;(1,2)|tojson;{1:2,none:3,true:4,1.5:5}|tojson;'\\x00\\x1f\\x7f</script>'|tojson;['a\\nb\\t"\\\\']|tojson
d|tojson(indent=2);mixed|tojson(indent=4);empty_dict|tojson(indent=2);[[],{}]|tojson(indent=1);d|tojson(sort_keys=true);d|tojson(separators=(',',':'));u|tojson(ensure_ascii=true);d|tojson(indent=0);l|tojson(indent='--');d|tojson(indent=2, separators=(', ', ' = '));u|tojson(true);d|tojson(false, 2);undefined_name|tojson;range(2)|tojson;d.items()|tojson;users|tojson(indent=none)
d|items|list;undefined_name|items|list;empty_dict|items|list;l|items;d.items()|list|length;users[0]|items|map('first')|join(',')
s|indent;'a\\nb\\n\\nc'|indent(2);'a\\nb'|indent(2,true);'a\\n\\nb'|indent(2,blank=true);'a\\nb'|indent('> ');'a\\nb\\n'|indent(1, first=true);e|indent;'a\\nb'|indent(width=3);n|indent
'42'|int;'42.9'|int;'x'|int;'x'|int(7);f|int;neg|int;'-3'|int;' 12 '|int;'1_000'|int;'0x1f'|int(0,16);'101'|int(base=2);'ff'|int(base=16);nil|int;t|int;'1e3'|int;'٣'|int(-1);l|int(5);e|int
'4.5'|float;'x'|float;'x'|float(1.5);n|float;'1e3'|float;' 2 '|float;nil|float;'inf'|float;'-1_0.5'|float
neg|abs;-2.5|abs;f|round;2.675|round(2);3.5|round;-2.5|round;n|round;f|round(0,'ceil');f|round(0,'floor');1234.567|round(-2);7.123|round(1,'ceil');1234|round(-2);5|round(2)
l|sum;users|sum(attribute='age');empty_list|sum;[0.1,0.2]|sum;l|sum(start=10);words|sum
s|safe;'<a>'|escape;'<a&"\\'>'|e;'<a>'|safe|escape;('<a>'|safe) ~ '<b>';('<a>'|safe) + '<b>';'<a>' + ('<b>'|safe);('<b>'|escape)|upper;'<a>'|forceescape;('<'|escape)|forceescape;[('<'|safe)];('<b>'|safe)|length;('x'|safe) is string;('x'|safe) is escaped;('x'|safe)|tojson;('%s'|safe)|string
s|truncate(5);s|truncate(8,true);s|truncate(8,false,'..');'foo bar baz qux'|truncate(9,leeway=0);'foo bar baz qux'|truncate(9,true,leeway=0);s|truncate;u|truncate(8,true,'…',0)
'a b  c-d'|wordcount;'x'|center(5);'%s-%s'|format(1,'b');'%(a)s'|format(a=3);'%d%%'|format(5);'%05.2f|%x|%r'|format(2.5,255,'q');l|batch(2)|list;l|batch(2,'x')|list;[1,2,3,4,5]|slice(2)|list;[1,2,3,4,5]|slice(3,0)|list;d|attr('b');d|attr('get')('b')
s|nope;s|upper|lower|title;s|upper(1);s|replace;s|default(1,2,3);-n|abs;(-n)|abs;n|string|length;s|length|string ~ 'x';s.upper()|lower
""".strip("\n").split("\n")

_METHODS = """
s.upper();s.lower();s.title();s.capitalize();u.upper();"they're bill's".title();s.strip();ws.strip();ws.lstrip();ws.rstrip();'xxaxx'.strip('x');'abc'.lstrip('ab');'abc'.rstrip('cb');s.strip(none);'￿x'.strip()
s.split(',');s.split();ws.split();'a,b,,c'.split(',');'a,b,c'.split(',',1);'a b  c d'.split(none,2);' a  b '.split(none,1);''.split();''.split(',');'a--b'.split('--');'a,b,c'.rsplit(',',1);' a b  c '.rsplit(none,1);s.split('');'abc'.split('x');'a,b'.split(',')[0];'a,b'.split(',')[-1];s.split(sep='o', maxsplit=1);' a b '.rsplit()
s.startswith('Hell');s.startswith('x');s.endswith('ld');s.startswith(('x','H'));s.endswith(());s.startswith('ell',1);s.startswith('',50);s.endswith('lo',0,5);s.startswith(1);e.startswith('');u.startswith('日',6)
s.replace('l','L');s.replace('l','L',1);s.replace('','.');s.replace('x','y',0);s.replace('l');'aXbX'.replace('X','')
s.find('o');s.find('z');s.rfind('o');s.index('W');s.index('z');s.count('l');s.count('');u.find('日');s.find('o',5);s.find('o',-100,3);s.count('o',0,5);u.count('')
','.join(words);''.join([]);'-'.join(s);','.join(l);','.join(d);','.join(['a'|safe, '<'])
'{} {}'.format(1,'a');'{0}{1}{0}'.format('x','y');'{a}-{b}'.format(a=1,b=none);'{{}}'.format();'{:>5}|{:<5}|{:^5}'.format('a','b','c');'{:05d}|{:x}|{:,}|{:+d}'.format(42,255,1234567,5);'{:.2f}|{:8.3f}|{:e}|{:.0%}'.format(3.14159,2.5,12345.678,0.25);'{!r}'.format('q');'{0[a]} {0.b}'.format({'a':1,'b':2});'{}'.format();'{:*^9}'.format('mid');'{:>5}'.format(1.5);'{0[1]}'.format([1,2]);'{}'.format([1,'a']);'{:.2}'.format('abc');'{:b} {:o} {:#x}'.format(5,8,255)
'%s %s' % (1,'a');'%s' % 'x';'%d' % 3.7;'%5s|%-5s|' % ('a','b');'%05d|%+d|% d' % (42,1,2);'%.2f|%e|%g' % (3.14159,12345.678,0.0001);'%x|%X|%o|%#x' % (255,255,8,255);'%r' % 'q';'%%' % ();'%s' % none;'%s' % l;'%(a)s %(b)d' % {'a':'x','b':2};'%c%c' % ('a',66);'%s' % (1,2);'%s %s' % 'a';'%d' % 'x';'%s' % undefined_name;'no' % d;'%.3s' % 'abcdef';'%*d' % (5,42);'%s' % {'a':1};'%i' % t
'abc'.isalpha();'ab1'.isalpha();'12'.isdigit();'²'.isdigit();'²'.isdecimal();'½'.isnumeric();'a1'.isalnum();' \\t'.isspace();''.isspace();'AB'.isupper();'Ab'.isupper();'ab1'.islower();'1'.islower();'日本'.isalpha();'Ⅷ'.isnumeric();'ǅ'.isupper()
'7'.zfill(3);'-7'.zfill(4);'a'.ljust(3) ~ '|';'a'.rjust(3);'a'.center(4) ~ '|';'ab'.center(5,'*');'a'.center(2,'-');'prefix-x'.removeprefix('prefix-');'x.txt'.removesuffix('.txt');'a=b=c'.partition('=');'a=b=c'.rpartition('=');'abc'.partition('x');'abc'.rpartition('x');'a\\nb\\r\\nc\\x0bd'.splitlines();'a\\nb\\n'.splitlines(true);''.splitlines();'a\\u2028b'.splitlines()
l.index(1);l.count(1);l.index(99);(1,2,1).count(1);l.sort();l.extend([1]);d.update({});d.pop('b');d.clear;d.pop is defined;l.sort is defined;l.append is callable;s.nope();s.nope;s.__class__;d.__len__;l.__add__
""".strip("\n").split("\n")

_TESTS = """
n is defined;undefined_name is defined;undefined_name is undefined;n is not defined;nil is defined;d.zz is defined;d.b is defined;d.items is defined;users[9] is defined;loop is defined
s is string;n is string;('x'|safe) is string;n is number;t is number;f is number;n is integer;t is integer;f is integer;f is float;t is boolean;n is boolean;t is true;n is true;1 is true;no is false;0 is false;nil is none;undefined_name is none
d is mapping;l is mapping;l is sequence;s is sequence;d is sequence;(1,) is sequence;n is sequence;range(2) is sequence;d.items() is sequence;undefined_name is sequence;l is iterable;n is iterable;s is iterable;d is iterable;nil is iterable;undefined_name is iterable;d.items() is iterable;(l|map('string')) is iterable;(l|map('string')) is sequence;range(2) is iterable
3 is odd;4 is even;-3 is odd;9 is divisibleby(3);9 is divisibleby 3;'abc' is lower;'ABC' is upper;'Abc' is lower;'1' is lower;n is eq 7;n is ne(7);n is gt 5;n is lt 5;n is ge 7;n is le 6;n is equalto 7;2 is in [1,2];'a' is in 'abc';nil is sameas none;t is sameas true;1 is sameas true;l is sameas l;namespace is callable;n is callable;'upper' is filter;'nope' is filter;'odd' is test;'nope' is test;n is not string and s is string;not n is string;n is nope;3 is odd and 4 is even;n is string or true;l is not mapping
""".strip("\n").split("\n")

_STATEMENTS = [
    "{% for x in l %}{{ x }},{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for x in words %}{{ loop.cycle('odd', 'even') }}{% endfor %}",
    "{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }} {% endfor %}",
    "{% for x in l %}{{ loop.depth }}{{ loop.depth0 }}{{ loop['index'] }}{{ loop.nope is defined }}{% endfor %}",
    "{% for x in [] %}a{% else %}empty{% endfor %}",
    "{% for x in l %}a{% else %}empty{% endfor %}",
    "{% for x in l %}{% break %}{% else %}never completed{% endfor %}",
    "{% for x in l %}{% continue %}{% else %}never completed{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}E{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ x }}{{ loop.length }}{{ loop.last }}{% endfor %}",
    "{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in l if not ns.stop %}{{ x }}{% if x == 1 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in l if not ns.stop %}{{ x }}{{ loop.last }}{% set ns.stop = true %}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|items %}{{ k }}={{ v }};{{ loop.last }}{% endfor %}",
    "{% for (a, b), c in [((1,2),3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [(1,2),(3,)] %}{{ a }}{% endfor %}",
    "{% for a in 1, 2, 3 %}{{ a }}{% endfor %}",
    "{% for c in 'héy' %}[{{ c }}]{% endfor %}",
    "{% for k in d %}{{ k }} {% endfor %}",
    "{% for x in undefined_name %}a{% else %}b{% endfor %}",
    "{% for x in nil %}a{% endfor %}",
    "{% for x in n %}a{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}",
    "{% for x in l %}{% set o = loop %}{% for y in l %}{{ o.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in range(3) %}{{ x }}{% endfor %}{% for x in range(5, 0, -2) %}{{ x }}{% endfor %}",
    "{{ range(3) }}{{ range(1, 10, 2) }}{{ range(0)|list }}{{ range(3)|length }}",
    "{{ range(0, 200000)|length }}",
    "{% for x in l[::-1] %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% for i in l %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}",
    "{% for i in l %}{% if i == 3 %}{% set y = 'set' %}{% endif %}{{ y }}|{% endfor %}{{ y }}",
    "{% for n in l %}{{ n }}{% endfor %}{{ n }}",
    "{% for i in l %}{% if loop.first %}{% set n = 'first' %}{% endif %}{{ n }} {% endfor %}",
    "{% set ns = namespace(a=1, b='x') %}{% set ns.a = ns.a + 1 %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns['b'] }}{{ ns.a is defined }}{{ ns.zz is defined }}",
    "{% set ns = namespace() %}{% for x in l %}{% set ns.last = x %}{% endfor %}{{ ns.last }}",
    "{% set d.b = 5 %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = [1, 2, 3] %}",
    "{% set (a, b) = (1, 2) %}{{ b }}{{ a }}",
    "{% set t = 1, 2 %}{{ t }}",
    "{% set x %}block {{ n }}{% endset %}[{{ x }}]{{ x is string }}",
    "{% set x | upper %}block {{ n }}{% endset %}[{{ x }}]",
    "{% set x | upper | replace('B', 'c') %}block{% endset %}{{ x }}",
    "{% set x %}{% set inner = 1 %}a{% endset %}{{ x }}{{ inner }}",
    "{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}",
    "{% if n > 9 %}a{% elif n > 3 %}b{% else %}c{% endif %}",
    "{% if n > 9 %}a{% elif n > 8 %}b{% else %}c{% endif %}{% if no %}x{% endif %}",
    "{% if undefined_name %}a{% else %}b{% endif %}{% if e %}a{% else %}b{% endif %}{% if empty_dict %}a{% else %}b{% endif %}",
    "{% if n %}{% set z = 1 %}{% endif %}{{ z }}",
    "{% macro m(a, b=2, c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, c=3) }}|{{ m(1, 5, 6) }}|{{ m() }}|{{ m(b=1, a=0) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m() %}{{ varargs|length }}{% endmacro %}{{ m() }}",
    "{% macro m(n) %}{% if n > 0 %}{{ n }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(4) }}",
    "{% macro m() %}{{ outer }}{% endmacro %}{% set outer = 'late' %}{{ m() }}",
    "{% macro m() %}{% set n = 99 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}",
    "{% macro m() %}{{ x }}{% endmacro %}{% for x in l %}{{ m() }}{% endfor %}",
    "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro m() %}a{% endmacro %}{{ m()|upper }}{{ m() ~ 'b' }}{{ m() is string }}{{ m is callable }}{{ m is defined }}",
    "{% macro w(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call w('b') %}in {{ n }}{% endcall %}",
    "{% macro w() %}{{ caller(1, y=2) }}{% endmacro %}{% call(x, y=5) w() %}{{ x }}{{ y }}{% endcall %}",
    "{% macro w() %}{{ caller is defined }}{% endmacro %}{{ w() }}{% call w() %}{% endcall %}",
    "{% macro w() %}{{ caller() }}{% endmacro %}{{ w() }}",
    "{% macro w() %}plain{% endmacro %}{% call w() %}x{% endcall %}",
    "{% for x in l %}{% call m2() %}{% endcall %}{% endfor %}",
    "{% filter upper %}abc {{ s }}{% endfilter %}",
    "{% filter replace('a', 'b')|upper %}abc{% endfilter %}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with %}{% set q1 = 3 %}{{ q1 }}{% endwith %}{{ q1 }}",
    "{% generation %}gen {{ n }}{% set g1 = 1 %}{% endgeneration %}{{ g1 }}",
    "{% for x in l %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{% print n, s %}",
    "{% raw %}{{ not }} {% tags %}{% endraw %}|",
    "{%- raw -%}  {{ x }}  {%- endraw -%}  |",
    "a {# comment {{ n }} #} b{#- strip -#} c",
    "a\n{# c #}\nb",
    "  {% if t %}\n  x\n  {% endif %}\ny",
    "  {%+ if t %}\n  x\n  {% endif %}\ny",
    "  {%- if t -%}\n  x\n  {%- endif -%}\n  y",
    "{% if t +%}\nx{% endif %}",
    "a\n  {{ n }}\n  b",
    "a  {{- n -}}  b",
    "a\n\n{%- set x = 1 %}\n\nb",
    "\n\n{% if t %}\n\nx\n\n{% endif %}\n\n",
    "x {% if t %} y {% endif %} z",
    "\t{% set a = 1 %}\t\nb\t{% set c = 2 %}\td",
    "line1\r\nline2\r{% if t %}\r\nx{% endif %}\n",
    "a\n",
    "a\n\n",
    "\n",
    "{{ 'a\r\nb' }}",
    "{{ n\n+\n1 }}",
    "{{ {'a': {'b': 1}}['a']['b'] }}{{ {'x':1}.x }}",
    "{{ '}}' }}{{ '{{' }}{{ '%}' }}",
    "{{ [1, 2,] }}{{ {'a': 1,} }}{{ (1, 2,) }}",
    "{{ dict(a=1, b=2) }}{{ dict([('x', 1)]) }}{{ dict({'a': 1}, b=2) }}",
    "{{ strftime_now('%d %b %Y %H:%M:%S %A %j %%') }}",
    "{{ strftime_now('') }}",
    "{{ raise_exception('no ' ~ n) }}",
    "{% if no %}{{ raise_exception('x') }}{% endif %}ok",
    "{{ undefined_name }}{{ undefined_name|default('d') }}",
    "{{ undefined_name.x }}",
    "{{ undefined_name['x'] }}",
    "{{ undefined_name() }}",
    "{{ undefined_name + 1 }}",
    "{{ undefined_name < 1 }}",
    "{{ undefined_name == undefined_other }}{{ undefined_name == none }}{{ undefined_name != 1 }}{{ not undefined_name }}",
    "{{ undefined_name in [1] }}{{ [undefined_name] }}{{ {'a': undefined_name} }}",
    "{{ 'a' in none }}",
    "{{ 1 in 'abc' }}",
    "{{ 1 + 'a' }}",
    "{{ 'a' + 1 }}",
    "{{ 1 < 'a' }}",
    "{{ none + 1 }}",
    "{{ 1 / 0 }}",
    "{{ 1 % 0 }}",
    "{{ 1 // 0 }}",
    "{{ n() }}",
    "{{ {[]: 1} }}",
    "{{ d.b.c.d is defined }}",
    "{{ d.zz.c is defined }}",
    "{{ (d.zz or {}).c is defined }}",
    "{{ s is defined and s|length > 3 and s[0] == 'H' }}",
    "{{ 'yes' if 'a' in 'abc' and not no else 'no' }}",
    "{{ (users|selectattr('age', 'equalto', 25)|list)[0].name }}",
    "{{ users|map(attribute='name')|map('upper')|join(',') }}",
    "{{ l|map('string')|join(', ') ~ '.' }}",
    "{%- for m in users %}{{- '<|' + m.name + '|>' }}{%- if not loop.last %},{% endif %}{%- endfor %}",
    "{% set out = [] %}{% for x in l %}{% set out = out + [x * 2] %}{% endfor %}{{ out }}",
    "{% set ns = namespace(out=[]) %}{% for x in l %}{% set ns.out = ns.out + [x * 2] %}{% endfor %}{{ ns.out }}",
    "{% set g2 = l|map('string') %}{{ g2|list }}{{ g2|list }}",
    "{% set g2 = l|map('string') %}{% for x in g2 %}{{ x }}{{ loop.length }}{% endfor %}",
    "{% for x in l|map('string') %}{{ loop.last }}{{ loop.index }}/{{ loop.length }} {% endfor %}",
    "{{ m3(*[1, 2], **{'x': 3}) }}{% macro m3() %}{% endmacro %}",
    "{% macro m3(a, b, x=0) %}{{ a }}{{ b }}{{ x }}{% endmacro %}{{ m3(*[1, 2], **{'x': 3}) }}",
    "{{ [1,2,3]|join(',',) }}",
    "{{ loop }}{{ caller }}{{ varargs }}",
    "{{ (1, 2) in [(1, 2)] }}{{ {(1, 2): 'x'}[(1, 2)] }}",
    "{{ {1: 'a'}[1.0] }}{{ {1: 'a'}[true] }}{{ {'1': 'a'}[1] is defined }}",
    "{{ 'abc'|list|reverse|join }}{{ 'x'.join(['a', 'b']) }}",
    "{{ big }}{{ big + 1 }}{{ big * 2 }}{{ big / 2 }}",
    "{{ f }}{{ g }}{{ h }}{{ tiny }}{{ f * 2 }}{{ n * h }}",
    "{{ mixed }}{{ d }}{{ users[0] }}",
    "{% set x = namespace(v=1) %}{% macro inc() %}{% set x.v = x.v + 1 %}{% endmacro %}{{ inc() }}{{ inc() }}{{ x.v }}",
    "{% if true %}{% macro late() %}L{% endmacro %}{% endif %}{{ late() }}",
    "{% set loop_messages = users[1:] %}{% for m in loop_messages %}{{ m.name }}{{ loop.index0 % 2 == 0 }}{% endfor %}",
    "{{ users[-1:][0].name }}{{ users[:1]|length }}{{ users[5:] }}",
    "{% set s = s %}{{ s }}{% set s = 'new' %}{{ s }}",
    "{{ s\n}}{#\n#}\n{{- n }}",
    "{% if s %}{{ s }}{% endif %}{% if l and l[0] %}x{% endif %}",
    "{{ 'é' ~ u[:1] ~ u|length }}",
    "{{ none }}{{ [none] }}{{ none ~ '' }}",
    "{{ 1.0 }}{{ 1e-5 }}{{ 12345678901234567.0 }}{{ 0.1 + 0.2 }}{{ 1/3 }}{{ 1e22 }}{{ 123456.0 }}",
    "{% for i in range(3) %}{% for j in range(3) %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}",
    "{% for item in d.items()|list %}{{ item[0] }}{{ item|length }}{% endfor %}",
    "{% set content = '<think>a</think>b' %}{{ content.split('</think>')[-1].lstrip('\\n') }}{{ content.split('</think>')[0].rstrip('\\n').split('<think>')[-1] }}",
    "{{ '%s is %d years' % (users[0].name, users[0].age) }}",
    "{{ 'a'|upper if t }}{{ 'a'|upper if no }}|",
    "{{ x if x is defined else 'undef' }}",
    "{{ 5 if no else 6|string ~ 'z' }}",
    "{{ -1|abs }}{{ -5 % 3 }}{{ (-5) // 3 }}{{ 2 * -3 }}",
    "{{ not n in l }}{{ n not in l and true }}",
    "{{ 'a' < 'b' < 'c' }}{{ 1 < 3 > 2 }}{{ 1 == 1 != 2 }}",
    "{% for u1 in users if u1.admin is defined and u1.admin %}{{ u1.name }}{% endfor %}",
    "{{ ('a', 'b')|join }}{{ ('a',)|length }}",
    "{{ [[1, 2], [3]]|map('first')|list }}{{ [[1, 2], [3]]|map('length')|sum }}",
    "{{ [1, 2, 3]|map('tojson')|join(' ') }}",
    "{{ '\\x3cb\\x3e' }}{{ \"\\u4e2d\" }}",
    "{% set a = 'x' %}{% set a = a ~ 'y' %}{{ a }}{% set _ = a %}{{ _ }}",
    "{{ {'a': 1, 'a': 2} }}{{ {'a': 1}.items()|list }}",
    "{{ ''.join(['a', 'b'])|upper }}{{ 'A'.lower() ~ 'B'.lower() }}",
    "{{ true|string|lower }}{{ 1.50|string }}{{ none|string|length }}",
    "{{ [3, 1]|sort|first }}{{ 'b,a'.split(',')|sort|join(';') }}",
    "{{ 007 }}",
    "{{ 1 2 }}",
    "{{ }}",
    "{{ 'open }}",
    "{% if %}{% endif %}",
    "{% for x of l %}{% endfor %}",
    "{% nope %}",
    "{% endif %}",
    "{% if t %}",
    "{{ (1 }}",
    "{{ 1) }}",
    "{{ a.b. }}",
    "{% set 1 = 2 %}",
    "{% set true = 2 %}",
    "{# open",
    "{% raw %} open",
    "{{ @ }}",
    "{{ a b }}",
    "{{ s|replace('a' 'b') }}",
    "{% macro m(a=1, b) %}{% endmacro %}",
    "{% break %}",
    "{% call n %}{% endcall %}",
    "{% include 'x' %}",
    "{% if t %}{{ s|from_nowhere }}{% endif %}",
    "{% if no %}{{ s|from_nowhere }}{% endif %}fine",
    "{{ s|from_nowhere if no else 'fine' }}",
    "{% if no %}{{ s is from_nowhere }}{% endif %}fine",
]


def _split(lines):
    return [e for line in lines for e in line.split(";") if e]


SNIPPETS = list(
    dict.fromkeys(
        ["{{ " + e + " }}" for e in _EXPRESSIONS + _split(_FILTERS) + _split(_METHODS) + _split(_TESTS)]
        + _STATEMENTS
    )
)
